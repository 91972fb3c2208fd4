"""How pages of Markdown are rendered from templates: sentences, numbers, links to a study's section."""

from __future__ import annotations

import re
from typing import Any

from sidelight.foundation.numbers import significant
from sidelight.studies.register import CATALOGUE
from sidelight.studies.study import OURS, Kind, Value

KINDS: tuple[Kind, ...] = ("reproduced", "differs", "refuted", "not possible")
_MADE = (
    "<!-- Written by `sidelight study run all --out RESULTS --pages FOLDER`; change the studies instead. -->"
)


def render(template: str, **context: Any) -> str:
    """Return a page of Markdown; what comes from a study is escaped by filters, where it may need it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - Markdown, and all words are our own
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=PackageLoader("sidelight.studies"),
    )
    environment.filters |= {"sentence": sentence, "shown": shown, "escaped": escaped}
    return environment.get_template(template).render(context, made=_MADE, ours=OURS).rstrip("\n") + "\n"


def sentence(words: str, *, capital: bool = True) -> str:
    """Return words as a sentence, with a capital letter unless it goes on after a colon."""
    start = words[:1].upper() if capital else words[:1]
    return escaped(f"{start}{words[1:].rstrip('.')}.")


def shown(value: Value) -> str:
    """Return a value as a page shows it: a number to four digits."""
    return escaped(significant(value))


def escaped(words: str) -> str:
    """Return words that break neither a table nor the page."""
    return words.replace("|", "\\|").replace("<", "&lt;")


def section(name: str) -> str:
    """Return the place of a study's section: its page, and the anchor that its title gets there.

    >>> section("cpl-eq6")
    'cpl.md#eq-6-total-leakage-as-a-sum-of-pairs'
    """
    listing = CATALOGUE[name]
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", listing.title).strip().lower())
    return f"{listing.paper.lower()}.md#{anchor}"
