"""Labels and counts as people read them; numbers are those of `foundation.numbers`."""

from __future__ import annotations

import html
import math
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from sidelight.foundation.numbers import budget as budget
from sidelight.foundation.numbers import certainty as certainty
from sidelight.foundation.numbers import decimals as decimals
from sidelight.foundation.numbers import error as error
from sidelight.foundation.numbers import factor as factor
from sidelight.foundation.numbers import hundredths as hundredths
from sidelight.foundation.numbers import nats as nats
from sidelight.foundation.numbers import points as points
from sidelight.foundation.numbers import share as share
from sidelight.foundation.numbers import significant as significant
from sidelight.foundation.numbers import whole as whole

if TYPE_CHECKING:
    from sidelight.schema import Schema

WEAK = 10.0
"""Above it a guarantee is weak to none (Ponomareva et al. 2023, tier 3): odds may change 22,000-fold."""
UNPROTECTED = "Computed from raw data: this is itself an unprotected statement about them."
AS_PUBLIC = "Bins and alphabets were taken from the data as if they were public."
MARK_OPEN, MARK_CLOSE = "\u2068", "\u2069"
"""Around a name of the data in a sentence: the characters that isolate text of another direction."""
_MOST_NAMED = 5
_LONGEST_LINE = 160
"""A line of a hover box is shortened to so many characters; the tables have names in full."""


def short(text: str, width: int = 24) -> str:
    """Shorten a text to `width` characters: the middle goes, because names often differ at their ends.

    >>> short("marital-status"), short("income of the household in 2021", width=15)
    ('marital-status', 'income …in 2021')
    """
    plain = " ".join(text.split())
    tail = (width - 1) // 2
    return plain if len(plain) <= width else f"{plain[: width - 1 - tail]}…{plain[len(plain) - tail :]}"


def marked(name: str, width: int = 40) -> str:
    """Set a name or value of the data off in a sentence, shortened, between marks that only pages see.

    >>> marked("age") == "\u2068age\u2069"
    True
    """
    plain = name.translate({ord(MARK_OPEN): None, ord(MARK_CLOSE): None})
    return f"{MARK_OPEN}{short(plain, width)}{MARK_CLOSE}"


def unmarked(text: str) -> str:
    """Return a sentence without its marks."""
    return text.replace(MARK_OPEN, "").replace(MARK_CLOSE, "")


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
    change = f"odds may change by a factor of {factor(largest)}"
    return [f"Warning: a budget of {largest:.4g} for {_first(weak)} hardly protects anyone: {change}."]


def publishing_notes(schema: Schema, holder: str) -> list[str]:
    """Say that a file (`holder`, in words) holds what was inferred from raw data: edges that are people's."""
    binned = [attribute.name for attribute in schema if attribute.edges]
    if not binned:
        return [f"{AS_PUBLIC} They are in {holder}."]
    exact = f"the edges of the bins of {_first(binned)} are exact values of some people"
    remedy = "Collect by a plan or protocol file with edges of your own to avoid it."
    return [f"{AS_PUBLIC} They are in {holder}: {exact}. {remedy}"]


def _first(names: Collection[str]) -> str:
    """Name the first few, and say that there are more."""
    return ", ".join([*names][:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
