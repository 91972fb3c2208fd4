"""Sessions of the studio for its tests: small tables, changes in few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sidelight as sl
from sidelight.studio import messages as said
from sidelight.studio.document import first_document
from sidelight.studio.final import Refiner
from sidelight.studio.history import History, Step
from sidelight.studio.opened import Place, open_table
from sidelight.studio.session import Session


def titanic(folder: Path) -> Path:
    """Write the bundled table as a file."""
    path = folder / "people.csv"
    _write(sl.example("titanic"), path)
    return path


def _write(table: sl.Table, path: Path) -> None:
    names = table.schema.names
    rows = [
        ",".join(table.schema[name].values[code] for name, code in zip(names, row, strict=True))
        for row in table.codes()
    ]
    path.write_text("\n".join([",".join(names), *rows]) + "\n", encoding="utf-8")


def session_of(path: Path, *, ready: bool = True, **reading: Any) -> Session:
    """Return a session of a table, its totals prepared."""
    place = Place(str(path), reading)
    opened = open_table(place, {})
    session = Session.start(place, History((Step(first_document(opened.table.rows)),)), opened)
    if ready:
        session.live.prepare()
    return session


def change(session: Session, *changes: said.Change, gesture: str = "") -> said.Update:
    """Make changes together."""
    return session.change(said.Changes(changes=list(changes), gesture=gesture))


def budget(epsilon: float, *names: str, plan: str = "plan-1") -> said.SetBudget:
    """Return the change of a budget."""
    return said.SetBudget(plan=plan, attributes=list(names), epsilon=epsilon)


def settled(session: Session, plan: str = "plan-1") -> said.PlanFigures:
    """Return the final figures of a plan."""
    for part in Refiner(session.opened).refined(session.document, plan):
        session.refine(plan, part)
    return session.figures[plan]
