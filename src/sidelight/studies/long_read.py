"""The long read about the five papers, every number of which is a study's.

`results.json` keeps what the studies found, so that the page can be written and checked without running them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError, unknown
from sidelight.foundation.files import write_text
from sidelight.studies.outputs import Saved
from sidelight.studies.register import CATALOGUE, PAPERS
from sidelight.studies.rendering import KINDS, render, section, sentence, shown
from sidelight.studies.study import OURS

RESULTS = "results.json"
_KEPT = ("verdict", "reason", "counter_example", "published", "ours")
_ROWS = 40
"""Longer tables stay with the outputs of their study."""

Told = Mapping[str, Mapping[str, Any]]
"""What every study found, by its name and the names of `Saved`, with its `table` where that is short."""


def write_results(path: Path, saved: Mapping[str, Saved], tables: Mapping[str, Sequence[list[str]]]) -> Told:
    """Write what all studies found to a file, and return it."""
    told = {name: _told(result, tables[name]) for name, result in saved.items()}
    write_text(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return told


def _told(result: Saved, table: Sequence[list[str]]) -> dict[str, Any]:
    kept = {name: value for name, value in vars(result).items() if name in _KEPT}
    return kept | {"table": list(table) if len(table) <= _ROWS else []}


def long_read(told: Told) -> str:
    """Return the page; a study or a value that it names and that is not there is an error."""
    story = _Story(told)
    return render(
        "five-papers.md.j2", papers=PAPERS, kinds=KINDS, numbers=story.numbers, counted=story.counted,
        reason=story.reason, example=story.example, link=story.link, title=story.title, table=story.table,
        printed=story.published, found=story.found,
    )  # fmt: skip


@dataclass(frozen=True)
class _Story:
    """What the page can say of the studies."""

    told: Told

    @property
    def counted(self) -> dict[str, list[int]]:
        """How many studies of each paper have each verdict."""
        found: dict[str, Counter[str]] = {paper: Counter() for paper in PAPERS if paper != OURS}
        for name, listing in CATALOGUE.items():
            if listing.paper in found:
                found[listing.paper][self._of(name)["verdict"]] += 1
        return {paper: [counts[kind] for kind in KINDS] for paper, counts in found.items()}

    @property
    def numbers(self) -> dict[str, int]:
        """How many studies of the papers there are, and how many have each verdict."""
        totals = [sum(column) for column in zip(*self.counted.values(), strict=True)]
        names = ("reproduced", "differs", "refuted", "impossible")
        return {"studies": sum(totals), **dict(zip(names, totals, strict=True))}

    def _of(self, study: str) -> Mapping[str, Any]:
        if study not in self.told:
            raise InputError(f"the results have no study {study!r}; run `sidelight study run all` again.")
        return self.told[study]

    def reason(self, study: str, case: str = "upper") -> str:
        """Return why a study has its verdict, as a sentence or, "lower", as one that goes on."""
        return sentence(self._of(study)["reason"], capital=case == "upper")

    def example(self, study: str) -> str:
        """Return the smallest case that refutes a statement, as a sentence; nothing where none does."""
        case = self._of(study)["counter_example"]
        return f"The smallest case: {sentence(case, capital=False)}" if case else ""

    def found(self, study: str, name: str) -> str:
        """Return our value for a published one."""
        return shown(_value(self._of(study)["ours"], name))

    def published(self, study: str, name: str) -> str:
        """Return a published value."""
        return shown(_value(self._of(study)["published"], name))

    def link(self, study: str) -> str:
        """Return a link to a study's section."""
        return f"[{study}]({section(study)})"

    def title(self, study: str) -> str:
        """Return what a study shows."""
        return CATALOGUE[study].title

    def table(self, study: str, columns: Mapping[str, str]) -> str:
        """Return some columns of a study's table as Markdown, by their names and with what to call them."""
        head, *rows = self._of(study)["table"]
        places = [_place(head, name) for name in columns]
        lines = [list(columns.values()), ["---:"] * len(columns)]
        lines += [[_rounded(row[place]) for place in places] for row in rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        raise unknown("value", name, values)
    return values[name]


def _place(head: Sequence[str], name: str) -> int:
    if name not in head:
        raise unknown("column", name, head)
    return head.index(name)


def _rounded(cell: str) -> str:
    """Return a cell with at most three decimals; words and whole numbers stay as they are."""
    return f"{float(cell):.3f}" if "." in cell else cell
