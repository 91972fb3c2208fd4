"""What the README says beside others is what the notes measured, and what it links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
NOTES = ROOT / "docs" / "notes"


def rows(text: str) -> list[list[str]]:
    """Return the cells of every row of every table."""
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found]


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("Norm-Sub, the usual post-processing", "Norm-Sub"),
        ("iterative Bayesian update", "the likeliest (iterative Bayesian update)"),
        ("a flat Dirichlet prior", "flat Dirichlet"),
    ],
)
def test_errors_beside_other_estimators_are_those_of_the_notes(said: str, noted: str) -> None:
    (mean, _, lost) = next(
        row[1:] for row in rows((NOTES / "collection.md").read_text("utf-8")) if row[0] == noted
    )
    figure = next(row[2] for row in rows(README) if row[0] == said)
    assert figure.startswith(f"{mean} times; {lost} cells lost")


def test_synthetic_people_beside_mbi_are_those_of_the_notes() -> None:
    text = (NOTES / "collection.md").read_text("utf-8").split("## Synthetic people beside mbi")[1]
    pairs = [row[2].split(", ") for row in rows(text) if len(row) == 5 and row[1] in ("1", "4")]
    ratios = sorted(float(ours) / float(theirs) for ours, theirs in pairs)
    figure = next(row[2] for row in rows(README) if row[0] == "mbi 2.0")
    assert len(ratios) == 6
    assert figure.startswith(
        f"{ratios[0]:.2f} to {ratios[4]:.2f} times in five, {ratios[5]:.2f} times in one"
    )


def test_learners_beside_the_published_one_are_those_of_the_notes() -> None:
    text = (NOTES / "learning.md").read_text("utf-8").split("## Attributes and label are secret")[1]
    cells = [row for row in rows(text.split("\n## ")[0]) if len(row) == 7 and re.match(r"\.\d", row[1])]
    ours, theirs = ([float(row[column].split()[1]) for row in cells] for column in (1, 2))
    figure = next(row[2] for row in rows(README) if row[0].startswith("kHR"))
    assert len(cells) == 5
    assert all(mine > other for mine, other in zip(ours, theirs, strict=True))
    ranges = [f"{min(values):.3f} to {max(values):.3f}" for values in (ours, theirs)]
    assert figure.startswith(" against ".join(ranges))


def test_what_the_readme_links_to_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert len(linked) > 20
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_the_readme_begins_with_installing_and_stays_short() -> None:
    first = re.search(r"```console\n(.*)", README)
    assert first is not None
    assert first.group(1).startswith("$ pip install ")
    assert README.index("```console") < 100
    assert len(README.splitlines()) < 200
