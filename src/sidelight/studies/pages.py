"""The pages of documentation that say what became of each paper, written from the outputs of a run.

There is one page a paper, one for benchmarks of ours, an index, and one that tells the whole story in the
shape of a paper (`long_read`); it is made from `results.json`, which is written beside the pages.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically, write_text
from sidelight.studies.long_read import RESULTS, long_read, write_results
from sidelight.studies.outputs import RESULT, TABLE, Saved, load
from sidelight.studies.register import CATALOGUE, PAPERS, find_study
from sidelight.studies.rendering import KINDS, render
from sidelight.studies.study import OURS

_COLOURS = 64


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
    tables = {name: _table(place / TABLE) for name, place in places.items()}
    of = {paper: [name for name in saved if CATALOGUE[name].paper == paper] for paper in PAPERS}
    pages = [write_text(folder / "index.md", _index(saved, of))]
    for paper, words in PAPERS.items():
        sections = [(find_study(name), saved[name], tables[name]) for name in of[paper]]
        text = render("paper.md.j2", paper=paper, words=words, sections=sections)
        pages.append(write_text(folder / f"{paper.lower()}.md", text))
    if saved.keys() == CATALOGUE.keys():
        told = write_results(folder / RESULTS, saved, tables)
        pages.append(write_text(folder / "five-papers.md", long_read(told)))
    return pages


def _index(saved: Mapping[str, Saved], of: Mapping[str, list[str]]) -> str:
    kinds = {paper: Counter(saved[name].verdict for name in names) for paper, names in of.items()}
    counts = {paper: [number[kind] for kind in KINDS] for paper, number in kinds.items() if paper != OURS}
    quick = sum(result.quick for result in saved.values())
    numbers = {"benchmarks": len(of[OURS]), "quick": quick, "count": len(saved)}
    return render("index.md.j2", kinds=KINDS, papers=counts, **numbers)


def _table(file: Path) -> list[list[str]]:
    """Return the cells of a study's table, its columns first; none where it has no table."""
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines())) if file.is_file() else []


def _shrink(source: Path, target: Path) -> None:
    """Copy a drawing with fewer colours: a quarter of the size, with no visible difference."""
    from PIL import Image

    with Image.open(source) as image:
        small = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    write_atomically(target, lambda temporary: small.save(temporary, format="PNG", optimize=True))
