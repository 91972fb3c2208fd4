"""The pages of documentation that say what became of each paper, written from the outputs of a run.

There is one page a paper, one for benchmarks of ours, and an index.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically, write_text
from sidelight.foundation.numbers import significant
from sidelight.studies.outputs import RESULT, TABLE, Saved, load
from sidelight.studies.register import CATALOGUE, PAPERS, find_study
from sidelight.studies.study import OURS, Kind, Value

KINDS: tuple[Kind, ...] = ("reproduced", "differs", "refuted", "not possible")
_COLOURS = 64
_MADE = (
    "<!-- Written by `sidelight study run all --out RESULTS --pages FOLDER`; change the studies instead. -->"
)


def write_pages(results: Path, folder: Path) -> list[Path]:
    """Write every page and the figures it shows; return the pages."""
    places = {name: results / name for name in CATALOGUE if (results / name / RESULT).is_file()}
    if not places:
        command = f"sidelight study run all --out {results}"
        raise InputError(f"{results} has no outputs of studies; run `{command}`.")
    try:
        saved = {name: load(place) for name, place in places.items()}
    except (OSError, ValueError) as error:
        raise InputError(f"{error}; run that study again with `--out {results}`.") from error
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, place in places.items():
        for figure, _ in saved[name].figures:
            _shrink(place / f"{figure}.png", images / f"{figure}.png")
    of = {paper: [name for name in saved if CATALOGUE[name].paper == paper] for paper in PAPERS}
    pages = [write_text(folder / "index.md", _index(saved, of))]
    for paper, words in PAPERS.items():
        sections = [(find_study(name), saved[name], _table(places[name] / TABLE)) for name in of[paper]]
        text = _render("paper.md.j2", paper=paper, words=words, sections=sections)
        pages.append(write_text(folder / f"{paper.lower()}.md", text))
    return pages


def _index(saved: Mapping[str, Saved], of: Mapping[str, list[str]]) -> str:
    kinds = {paper: Counter(saved[name].verdict for name in names) for paper, names in of.items()}
    counts = {paper: [number[kind] for kind in KINDS] for paper, number in kinds.items() if paper != OURS}
    quick = sum(result.quick for result in saved.values())
    numbers = {"benchmarks": len(of[OURS]), "quick": quick, "count": len(saved)}
    return _render("index.md.j2", kinds=KINDS, papers=counts, **numbers)


def _render(template: str, **context: Any) -> str:
    """Return a page of Markdown; what comes from a study is escaped by filters, where it may need it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - Markdown, and all words are our own
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=PackageLoader("sidelight.studies"),
    )
    environment.filters |= {"sentence": _sentence, "shown": _shown, "escaped": _escaped}
    return environment.get_template(template).render(context, made=_MADE, ours=OURS).rstrip("\n") + "\n"


def _table(file: Path) -> list[list[str]]:
    """Return the cells of a study's table, its columns first; none where it has no table."""
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines())) if file.is_file() else []


def _sentence(words: str, *, capital: bool = True) -> str:
    start = words[:1].upper() if capital else words[:1]
    return _escaped(f"{start}{words[1:].rstrip('.')}.")


def _shown(value: Value) -> str:
    return _escaped(significant(value))


def _escaped(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")


def _shrink(source: Path, target: Path) -> None:
    """Copy a drawing with fewer colours: a quarter of the size, with no visible difference."""
    from PIL import Image

    with Image.open(source) as image:
        small = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    write_atomically(target, lambda temporary: small.save(temporary, format="PNG", optimize=True))
