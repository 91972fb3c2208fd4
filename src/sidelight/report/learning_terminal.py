"""A learnt model for a terminal: the accuracy and, beside it, what the collection leaks."""

from __future__ import annotations

from rich.table import Table as Grid
from rich.text import Text

from sidelight.learning.decision import DecisionTree, tree_text
from sidelight.learning.learnt import Learnt
from sidelight.report.console import open_console
from sidelight.report.publishing import AS_PUBLIC
from sidelight.report.terminal import nats


def print_learnt(found: Learnt) -> None:
    """Print the accuracy with its control, the leakage statement, and the tree if it is one."""
    console = open_console()
    statement = found.statement
    name = model_name(found)
    heading = f"{name[0].upper()}{name[1:]} for {found.label.name} from {found.trained} people"
    grid = Grid(title=heading, title_justify="left")
    for title in ("protocol", "accuracy", "commonest label", "label leakage (nats)", "budget", "LabelDP"):
        grid.add_column(title, justify="left" if title == "protocol" else "right")
    style = "green" if statement.is_kept else "bold red"
    grid.add_row(
        statement.protocol,
        f"{found.accuracy:.3f} ({found.lower:.3f} to {found.upper:.3f})",
        f"{found.control:.3f}",
        Text.assemble((nats(statement.leakage), style), f" ({statement.kind})"),
        nats(statement.epsilon),
        nats(statement.labeldp),
    )
    console.print(grid)
    for note in notes(found):
        console.print(f"- {note}")
    if isinstance(found.model, DecisionTree):
        for line in tree_text(found.model, found.attributes, found.label).split("\n"):
            console.print(line)


def model_name(found: Learnt) -> str:
    """Return what kind of model it is, in words."""
    return "decision tree" if found.kind == "tree" else "Naive Bayes"


def notes(found: Learnt) -> list[str]:
    """Return what a reader of the figures must know."""
    notes = [found.statement.sentence()]
    if found.lower <= found.control:
        notes.append("The model is not clearly better than always guessing the commonest label.")
    notes.append(
        f"Tested on {found.tested} records of {found.source} that were not collected. The collection was "
        "simulated from raw data: accuracy and leakage are themselves unprotected statements about them."
    )
    return [*notes, AS_PUBLIC, *found.notes]
