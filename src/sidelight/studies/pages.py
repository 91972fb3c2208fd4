"""The pages of documentation that say what became of each paper, written from the outputs of a run.

There is one page a paper, one for benchmarks of ours, and an index.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically, write_text
from sidelight.foundation.numbers import significant
from sidelight.studies.outputs import TABLE, Saved, folders_of, load
from sidelight.studies.register import all_studies
from sidelight.studies.study import OURS, Kind, Study, Value

PAPERS = {
    "CPL": "The Hidden Cost of Correlation: Rethinking Privacy Leakage in Local Differential Privacy "
    "(Jayawardana, Ulukus, Ding, Thilakarathna)",
    "PDP": "Impact of Prior Knowledge and Data Correlation on Privacy Leakage: A Unified Analysis (Li, Ren, "
    "Yang, Yang)",
    "Corr-RR": "Frequency Estimation of Correlated Multi-attribute Data under Local Differential Privacy "
    "(Seeam, Zheng, Hu)",
    "CLLDP": "LabelDP Leaks Privacy: A Tightened Correlation-aware Privacy Model for Labeled Training Data "
    "(Xue et al.)",
    "Reconstruction": "Exploiting attribute correlation for reconstruction attacks on differentially private "
    "multi-attributed data (Jiang et al.)",
    OURS: "Benchmarks of ours that no paper has.",
}
"""What each short name stands for."""
KINDS: tuple[Kind, ...] = ("reproduced", "differs", "refuted", "not possible")
_COLOURS = 64
_MADE = (
    "<!-- Written by `sidelight study run all --out RESULTS --pages FOLDER`; change the studies instead. -->"
)


def write_pages(results: Path, folder: Path) -> list[Path]:
    """Write every page and the figures it shows; return the pages."""
    places = folders_of(results, [study.name for study in all_studies()])
    if not places:
        raise InputError(
            f"{results} has no outputs of studies; run `sidelight study run all --out {results}`."
        )
    try:
        saved = {name: load(place) for name, place in places.items()}
    except (OSError, ValueError) as error:
        raise InputError(f"{error}; run that study again with `--out {results}`.") from error
    files = {name: place / TABLE for name, place in places.items()}
    tables = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.is_file()}
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, place in places.items():
        for figure, _ in saved[name].figures:
            _shrink(place / f"{figure}.png", images / f"{figure}.png")
    pages = [
        write_text(folder / f"{_file(paper)}.md", _page(paper, words, saved, tables))
        for paper, words in PAPERS.items()
    ]
    return [write_text(folder / "index.md", _index(saved)), *pages]


def _file(paper: str) -> str:
    return paper.lower()


def _of(paper: str, saved: Mapping[str, Saved]) -> list[tuple[Study, Saved]]:
    return [
        (study, saved[study.name]) for study in all_studies() if study.paper == paper and study.name in saved
    ]


def _index(saved: Mapping[str, Saved]) -> str:
    lines = [
        _MADE,
        "",
        "# Reproduction",
        "",
        "Every table and figure of the five papers that public data allow, and benchmarks of ours. "
        "`sidelight study run all` computes them; each page shows what is published beside what was found.",
        "",
        "| paper | " + " | ".join(KINDS) + " |",
        "| --- |" + " ---: |" * len(KINDS),
    ]
    for paper in PAPERS:
        if paper != OURS:
            kinds = Counter(result.verdict.kind for _, result in _of(paper, saved))
            counts = " | ".join(str(kinds[kind]) for kind in KINDS)
            lines.append(f"| [{paper}]({_file(paper)}.md) | {counts} |")
    lines += ["", f"[Benchmarks of ours]({_file(OURS)}.md) that no paper has: {len(_of(OURS, saved))}."]
    quick = sum(result.quick for result in saved.values())
    if quick:
        lines += ["", f"{quick} of {len(saved)} are shown from a quick run; the command below each says so."]
    lines += [
        "",
        "*Reproduced* means that what the text says was met; *differs*, that it was not, with the reason "
        "found; *refuted*, that a smallest case shows a statement to be wrong; *not possible*, that data are "
        "missing or what is described does not exist.",
        "",
        "Published formulas that lie below the truth, each with a case to run: "
        "[below the truth](below-the-truth.md).",
    ]
    return "\n".join(lines) + "\n"


def _page(paper: str, words: str, saved: Mapping[str, Saved], tables: Mapping[str, str]) -> str:
    title = "Benchmarks of ours" if paper == OURS else f"Paper {paper}"
    lines = [_MADE, "", f"# {title}", "", words, ""]
    for study, result in _of(paper, saved):
        lines += _section(study, result, tables.get(study.name, ""))
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(study: Study, result: Saved, table: str) -> list[str]:
    verdict = "" if study.paper == OURS else f"**{result.verdict.kind.capitalize()}.** "
    lines = [f"## {study.title}", "", f"{verdict}{_sentence(result.verdict.reason)}", ""]
    if result.verdict.counter_example:
        lines += [f"Counter-example: {_sentence(result.verdict.counter_example, capital=False)}", ""]
    if study.published:
        lines += ["| | published | ours |", "| --- | ---: | ---: |"]
        lines += [
            f"| {_escaped(name)} | {_shown(value)} | {_shown(result.ours.get(name, 'not computed'))} |"
            for name, value in study.published.items()
        ]
        lines.append("")
    if table and not study.published and not result.figures:
        lines += [*_table(table), ""]
    for figure, title in result.figures:
        lines += [f"![{study.title}: {title}](images/{figure}.png)", ""]
    return [*lines, f"`sidelight study run {study.name}{' --quick' if result.quick else ''}`", ""]


def _table(text: str) -> list[str]:
    """Return a table as Markdown, from its CSV."""
    columns, *rows = csv.reader(text.splitlines())
    head = ["| " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) - 1)]
    return [*head, *("| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows)]


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
