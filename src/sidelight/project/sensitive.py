"""What the name and the values of a column suggest about how sensitive it is. Always a guess.

The kinds are those that the law names (GDPR, articles 9 and 10), money, and whereabouts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from sidelight.schema import MISSING, Attribute

Topic = Literal["health", "money", "origin and belief", "intimate life", "offences", "whereabouts"]
_STEMS: dict[Topic, str] = {
    "health": "diagnos|disease|illness|sick|health|medic|disab|pregnan|diabet|cancer|tumou?r|cardi|heart|hiv|"
    "aids|stroke|asthma|depress|mental|psych|therap|treatment|hospital|symptom|cholest|gluc|blood|bmi|smok|alco|"
    "drink|drug|addict|vaccin|icd|surg|krank|salud|sante|mortal|death|died|suicid|allerg",
    "money": "income|salar|wage|earning|debt|loan|credit|wealth|capital|tax|pension|benefit|welfare|savings|"
    "mortgage|bankrupt|default|poverty|networth|einkommen|gehalt|lohn|revenu|ingreso|stipendi",
    "origin and belief": "relig|church|faith|race|racial|ethni|nationalit|citizen|native|immigra|migrant|"
    "polit|party|vote|voting|union|ideolog|caste|tribe|birthplace|confession",
    "intimate life": "sexual|orientation|lgbt|marital|divorc|abortion|contracep|hiv|partner|affair",
    "offences": "crim|convict|arrest|offen[cs]|prison|felon|police|fraud|recidiv|punish",
    "whereabouts": "latitude|longitude|lat|lon|lng|gps|pickup|dropoff|location|address|home|geo|whereabout|"
    "nta|nbhd|neighbou?rhood|postcode|zip|zipcode|plz",
}
_WHOLE = {"lat", "lon", "lng", "nta", "gps", "geo", "hiv", "aids", "bmi", "icd", "race", "tax", "zip", "plz",
          "home", "party", "union", "vote", "loan", "native", "heart", "blood"}  # fmt: skip
"""Stems that must be a whole word: 'race' is no part of 'trace', 'lat' none of 'flat'."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_SPLITS = {"train", "training", "test", "testing", "valid", "validation", "val", "dev", "eval", "holdout"}
RARE = 0.2
"""A yes or no that at most this share of people have is taken for something to hide."""


def topic_of(name: str) -> Topic | None:
    """Return what kind of secret the name of a column suggests, or None.

    >>> [topic_of(name) for name in ("capital-gain", "hasDiabetes", "PICKUP_latitude", "flat", "trace")]
    ['money', 'health', 'whereabouts', None, None]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    for topic, stems in _STEMS.items():
        for stem in stems.split("|"):
            pattern = re.compile(stem)
            is_there = pattern.fullmatch if stem in _WHOLE else pattern.match
            if any(is_there(word) for word in words):
                return topic
    return None


def rare_value(attribute: Attribute, shares: Sequence[float]) -> tuple[str, float] | None:
    """Return the value that few have of an attribute with two, and how many; None where both are common."""
    shown = [
        (share, value) for share, value in zip(shares, attribute.values, strict=True) if value != MISSING
    ]
    if len(shown) != 2 or not 0 < min(shown)[0] <= RARE:
        return None
    share, value = min(shown)
    return value, share


def tells_a_split(values: Sequence[str]) -> bool:
    """Whether the values of a column say only which part of a data set a record belongs to.

    >>> tells_a_split(("test", "train")), tells_a_split(("test", "passed"))
    (True, False)
    """
    named = {value.lower() for value in values if value != MISSING}
    return len(named) > 1 and named <= _SPLITS
