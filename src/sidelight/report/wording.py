"""Figures and labels as people read them. Nothing here changes a figure, it only rounds and words it."""

from __future__ import annotations

import html
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Context

_DIGITS = 6
_ROUNDING = 5e-10  # half of what an audit allows
WEAK = 10.0
"""Above it a guarantee is weak to none (Ponomareva et al. 2023, tier 3): odds may change 22,000-fold."""
UNPROTECTED = "Computed from raw data: this is itself an unprotected statement about them."
_MOST_NAMED = 5
_LONGEST_LINE = 160
"""A line of a hover box is shortened to so many characters; the tables have names in full."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def nats(value: float, digits: int = 3) -> str:
    """Write a leakage figure.

    >>> nats(1.43378), nats(39.8997), nats(0.0002), nats(0.0), nats(math.inf), nats(1.43378, digits=1)
    ('1.434', '39.90', 'below 0.001', '0', '∞', '1.4')
    """
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if value < 10**-digits:
        return f"below {10**-digits:g}"
    return f"{value:.{digits}f}" if value < 10 else f"{value:.{digits - 1}f}"


def plain_nats(value: float) -> str:
    """Write a leakage figure with three decimals, whatever its size.

    >>> plain_nats(1.43378), plain_nats(-0.0), plain_nats(-1e-17), plain_nats(math.inf)
    ('1.434', '0.000', '0.000', '∞')
    """
    return f"{value:.3f}".replace("-0.000", "0.000") if math.isfinite(value) else "∞"


def factor(value: float) -> str:
    """Write e to the power of a leakage figure: the factor on odds.

    >>> factor(1.0), factor(12.08), factor(39.9), factor(math.inf), factor(2000.0)
    ('2.72', '176,000', '2.13 × 10¹⁷', '∞', '3.88 × 10⁸⁶⁸')
    """
    if math.isinf(value):
        return "∞"
    if value < math.log(1e6):
        number = math.exp(value)
        return f"{number:.2f}" if number < 10 else f"{float(f'{number:.3g}'):,.0f}"
    exponent, rest = divmod(value / math.log(10), 1)  # e to the power of 710 and more overflows a double
    return f"{10**rest:.2f} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def certainty(value: float) -> str:
    """Write what a fifty-fifty guess becomes when its odds are multiplied by e to the power of `value`.

    >>> certainty(1.0), certainty(40.0), certainty(math.inf)
    ('73.1 %', 'over 99.9 %', '100 %')
    """
    # from about 37 on the logistic function is 1 in double precision, which would read as certainty
    return share(1 / (1 + math.exp(-value)) if value < 20 or math.isinf(value) else 1 - 1e-9)


def share(value: float) -> str:
    """Write a probability in percent; what is not certain is never rounded to certainty.

    >>> share(0.677), share(0.99999), share(1.0), share(0.0001)
    ('67.7 %', 'over 99.9 %', '100 %', 'below 0.1 %')
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", " %")
    if value >= 0.9995:
        return "over 99.9 %"
    return f"{100 * value:.1f} %" if value >= 0.001 else "below 0.1 %"


def whole(value: float) -> str:
    """Write a whole number with separators.

    >>> whole(202599)
    '202,599'
    """
    return f"{value:,.0f}"


def budget(value: float) -> str:
    """Write a budget so that whoever types it in keeps the limits: six digits, rounded down.

    What is less than a rounding error below a round number is written as that.

    >>> budget(1.0), budget(0.9999999996), budget(0.61598796), budget(0.0000123456789), budget(math.inf)
    ('1', '1', '0.615987', '1.23456e-05', '∞')
    """
    if math.isinf(value):
        return "∞"
    nearest = float(f"{value:.{_DIGITS}g}")
    if nearest > value * (1 + _ROUNDING):
        nearest = float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal_from_float(value))
    return f"{nearest:.{_DIGITS}g}"


def error(value: float) -> str:
    """Write an expected error; NaN where a mechanism states none.

    >>> error(0.0253123), error(1072.6), error(math.nan)
    ('0.0253', '1,070', 'not stated')
    """
    if math.isnan(value):
        return "not stated"
    return f"{value:.3g}" if value < 999.5 else f"{float(f'{value:.3g}'):,.0f}"


def short(text: str, width: int = 24) -> str:
    """Shorten a text to `width` characters: the middle goes, because names often differ at their ends.

    >>> short("marital-status"), short("income of the household in 2021", width=15)
    ('marital-status', 'income …in 2021')
    """
    plain = " ".join(text.split())
    tail = (width - 1) // 2
    return plain if len(plain) <= width else f"{plain[: width - 1 - tail]}…{plain[len(plain) - tail :]}"


def short_value(attribute: str, value: str, width: int = 32) -> str:
    """Write a value of an attribute in `width` characters; the attribute's name gives way first.

    >>> short_value("years of education completed", "bachelor's degree")
    "years …pleted: bachelor's degree"
    """
    kept = short(value, max(width - len(attribute) - 2, 2 * width // 3))
    return f"{short(attribute, width - len(kept) - 2)}: {kept}"


def label(text: str, width: int = 24) -> str:
    """Shorten a text and escape it for the figures, whose texts are a kind of HTML.

    >>> label("a <b> name"), label("marital-status", width=9)
    ('a &lt;b&gt; name', 'mari…atus')
    """
    return html.escape(short(text, width), quote=False)


def labels(texts: Iterable[str], width: int = 24) -> list[str]:
    """Write the labels of one figure; where two would read alike, the later ones are numbered.

    >>> labels(["a year of 2019 in full", "a year of 2020 in full", "age"], width=11)
    ['a yea… full', 'a yea… full (2)', 'age']
    """
    numbered = []
    seen: Counter[str] = Counter()
    for text in (label(text, width) for text in texts):
        seen[text] += 1
        numbered.append(f"{text} ({seen[text]})" if seen[text] > 1 else text)
    return numbered


def paragraph(*lines: str, width: int = 52) -> str:
    r"""Join lines into the text of a hover box, wrapped and escaped; empty lines are left out.

    >>> paragraph("1.434 nats", "", "x < y")
    '1.434 nats\nx &lt; y'
    """
    wrapped = [part for line in lines for part in textwrap.wrap(short(line, _LONGEST_LINE), width)]
    return "\n".join(html.escape(part, quote=False) for part in wrapped)


def counted(number: int, noun: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "attribute"), counted(7, "attribute")
    ('1 attribute', '7 attributes')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def weak_budgets(budgets: Mapping[str, float]) -> list[str]:
    """Warn of finite budgets, by what they are spent on, that protect nothing to speak of.

    >>> weak_budgets({"age": 1.0, "income": 20.0})
    ['Warning: a budget of 20 for income hardly protects anyone: odds may change by a factor of 4.85 × 10⁸.']
    """
    weak = {name: epsilon for name, epsilon in budgets.items() if WEAK < epsilon < math.inf}
    if not weak:
        return []
    largest = max(weak.values())
    spent = ", ".join([*weak][:_MOST_NAMED]) + (", ..." if len(weak) > _MOST_NAMED else "")
    return [
        f"Warning: a budget of {largest:.4g} for {spent} hardly protects anyone: odds may change by a factor "
        f"of {factor(largest)}."
    ]
