"""What the name of a column, and a glance at its values, suggest: codes, dates, moments. Always a guess."""

from __future__ import annotations

import re
from collections.abc import Iterable

ISO = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z?)?"
"""What a date in text looks like; the engine must also be able to parse it."""
_CLOCK_NAMES = re.compile(r"(unix|epoch|timestamp|time|ts)(_?s(ec(ond)?s?)?)?$|_at$|^(unix|epoch)")
_EARLIEST, _LATEST = 315_532_800, 4_102_444_800
"""The years 1980 to 2100, in seconds since 1970."""

_NAMING = re.compile(
    "ids?|[ugp]id|uuid|guid|codes?|cd|key|nbr|zip|postal|plz|fips|ssn|isbn|issn|ean|upc|sku|iban|bic|swift|serial|"
    "imei|naics|sic|cik|cusip|isin|icd|atc|npi|vin|phone|telephone|tel|mobile|fax|passport|[a-z]+code"
)
"""Words at the end that say by themselves that a number names something."""

_OPENING = re.compile("id|code|cod|zip|postal")
"""Those of them that also begin a name: 'id_customer', 'code postal'."""

_COUNTING = re.compile("no|nr|num|number")
"""Words that may as well count: 'account number' and 'children number'."""

_AMOUNT = re.compile(
    "counts?|amount|sum|total|mean|avg|average|median|min|max|rate|ratio|share|pct|percent|score|size|length|len|"
    "age|duration|days|hours|minutes|seconds|price|cost|value|distance|weight|height|width|population|density|income|"
    "coverage|lines|of|per"
)
"""Words that say that a number is an amount, whatever else its name says."""

_JOINED = re.compile(
    "(user|customer|client|patient|person|member|employee|student|teacher|driver|account|acct|order|invoice|"
    "product|item|article|store|shop|branch|transaction|trans|session|device|record|case|event|object|location|"
    "station|vehicle|house|household|room|flight|ticket|policy|claim|contract|card|loan|school|hospital)"
    "(id|no|nr|nbr|num|number|code|key)"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_LEAST_CODE = 100


def looks_like_a_code(name: str, low: float) -> bool:
    """Whether the name of a column of whole numbers, and the least of them, suggest that they are codes.

    >>> [looks_like_a_code(name, 1000) for name in ("customer_nbr", "PULocationID", "userid", "Dossier No")]
    [True, True, True, True]
    >>> [looks_like_a_code(name, 0) for name in ("age", "education-num", "zip_population", "number_of_rooms")]
    [False, False, False, False]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or any(_AMOUNT.fullmatch(word) for word in words):
        return False
    last, pair = words[-1], "".join(words[-2:])
    if _NAMING.fullmatch(last) or _OPENING.fullmatch(words[0]):
        return True
    if _JOINED.fullmatch(last) or _JOINED.fullmatch(pair):
        return True
    return _COUNTING.fullmatch(last) is not None and low >= _LEAST_CODE


def are_dates(labels: Iterable[str]) -> bool:
    """Whether all labels look like dates in ISO form."""
    return all(re.fullmatch(ISO, label) for label in labels)


def tells_time(name: str) -> bool:
    """Whether the name of a column suggests that it holds points in time.

    >>> [tells_time(name) for name in ("unix_time", "Timestamp", "created_at", "lifetime_value")]
    [True, True, True, False]
    """
    return _CLOCK_NAMES.search(name.lower()) is not None


def are_moments(low: float | None, high: float | None) -> bool:
    """Whether numbers can be seconds since 1970, by their range; never where there are none."""
    return low is not None and high is not None and low >= _EARLIEST and high <= _LATEST
