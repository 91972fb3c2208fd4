"""What leaves the studio: the plan, the project, the data dictionary, a report, a notebook, the commands.

All of them are what the command line takes or makes: the same plan gives the same figures, since whatever is
drawn has the same seed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sidelight.auditing import Audit, Sampling, audit
from sidelight.foundation.strict import toml_text
from sidelight.foundation.toml import toml_comment
from sidelight.plan import Plan
from sidelight.project.file import PROJECT_VERSION
from sidelight.report import write_report
from sidelight.sources import Dictionary, column_names
from sidelight.sources.dictionary import Column
from sidelight.studio.document import WITHHELD, Document, Draft
from sidelight.studio.final import SEED, sampling_of
from sidelight.studio.history import History, state_text
from sidelight.studio.opened import Opened

_TOML, _HTML, _SHELL = "application/toml", "text/html", "text/x-shellscript"
_NOTEBOOK = "application/x-ipynb+json"


@dataclass(frozen=True)
class Export:
    """A file to be handed out."""

    name: str
    content: str
    media: str


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is exported: the document as it was when somebody asked, and one of its plans."""

    opened: Opened
    history: History
    revision: int
    plan_id: str

    @property
    def document(self) -> Document:
        """All decisions."""
        return self.history.present

    @property
    def draft(self) -> Draft:
        """The plan as it was decided."""
        return self.document.plan(self.plan_id)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.opened.plan(self.document, self.draft)

    @property
    def stem(self) -> str:
        """What files are called: the table's name, without what a shell or a header could trip over."""
        return re.sub(r"[^A-Za-z0-9_-]+", "-", self.opened.place.stem).strip("-") or "table"

    @property
    def sampling(self) -> Sampling:
        """How figures at delta are drawn."""
        return sampling_of(self.opened, self.document, self.plan)

    def audited(self) -> Audit:
        """Return the audit that `sidelight audit` makes of the exported files."""
        settings, plan = self.document.settings, self.plan
        return audit(
            self.opened.counted(plan), plan, [item.name for item in settings.secrets] or None,
            sampling=self.sampling, adversary=settings.adversary.view,
        )  # fmt: skip


def exported(asked: Snapshot, kind: str) -> Export:
    """Make one of the exports."""
    ending, media, make = EXPORTS[kind]
    return Export(f"{asked.stem}.{ending}", make(asked), media)


def _plan(asked: Snapshot) -> str:
    return asked.plan.to_toml()


def _schema(asked: Snapshot) -> str:
    """Return the data dictionary; it says too which columns were left out when the table was opened."""
    opened, reading = asked.opened, asked.opened.place.reading
    made = Dictionary.draft(opened.table, opened.dictionary)
    names: Sequence[str] = ()
    if reading.get("drop") or reading.get("columns"):
        names = column_names(
            opened.place.source, encoding=reading.get("encoding", "utf-8"), sql=reading.get("sql")
        )
    unread = {name: Column(kind="ignored") for name in names if name not in made.columns}
    return replace(made, columns={**made.columns, **unread}).to_toml()


def _state(asked: Snapshot) -> str:
    return state_text(asked.history, asked.opened.place.name, asked.revision)


def _project(asked: Snapshot) -> str:
    """Return a project file: the same secrets, limits and budgets, for `sidelight run`.

    Where values are coarsened it names the plan, which says how; else it says all by itself.
    """
    settings, sampling = asked.document.settings, asked.sampling
    data = {"path": asked.opened.place.name, "schema": f"{asked.stem}.schema.toml", **_source(asked)}
    secrets = {
        item.name: {
            **({} if item.limit is None else {"limit": item.limit}),
            **({"reason": item.reason} if item.reason else {}),
        }
        for item in settings.secrets
    }
    protect = {
        "limit": settings.limit,
        "adversary": "guess" if settings.adversary.view == "guess" else None,
        "delta": settings.delta,
        "decide_by": settings.adversary.decide_by,
        "draws": sampling.draws,
    }
    project: dict[str, Any] = {
        "version": PROJECT_VERSION, "purpose": settings.purpose, "seed": SEED, "data": data,
        "secret": secrets, "protect": {key: part for key, part in protect.items() if part is not None},
        "release": _released(asked),
        "wanted": {"people": settings.people, "precision": settings.precision},
    }  # fmt: skip
    coarse = asked.opened.coarsenings(asked.draft)
    beside = "The data dictionary and the plan lie" if coarse else "The data dictionary lies"
    head = [f"Made by the studio; `sidelight run` reports on it. {beside} beside it."]
    head += [f"In the plan: {item.says}." for item in coarse.values()]
    return "".join(f"{toml_comment(line)}\n" for line in head) + toml_text(project)


def _released(asked: Snapshot) -> dict[str, Any]:
    """Return how everything is released."""
    draft, names = asked.draft, asked.opened.schema.names
    if asked.opened.coarsenings(draft):
        return {"plan": f"{asked.stem}.plan.toml"}
    budgets = {item.name: item.epsilon for item in asked.plan.releases if item.epsilon is not None}
    mechanisms = {name: WITHHELD if draft.of(name).withheld else draft.of(name).mechanism for name in names}
    return {"mechanisms": mechanisms, "budgets": budgets}


def _source(asked: Snapshot) -> dict[str, Any]:
    """Return how the table is read, as far as a data dictionary does not say it."""
    reading = asked.opened.place.reading
    kept = {"sql": reading.get("sql"), "na": reading.get("na"), "encoding": reading.get("encoding")}
    return {
        name: part
        for name, part in kept.items()
        if part is not None and (name, part) != ("encoding", "utf-8")
    }


def _commands(asked: Snapshot) -> str:
    """Return the command lines that do the same, with the files that are exported beside them."""
    stem, name = asked.stem, asked.opened.place.name
    source = _source(asked)
    reading = ["--schema", f"{stem}.schema.toml"]
    for key, part in source.items():
        for value in part if isinstance(part, list | tuple) else [part]:
            reading.append(f"--{key}={value}")
    settings = asked.document.settings
    secrets = [f"--secret={_secret(item.name, asked.plan.limits)}" for item in settings.secrets]
    asked_for = ["--adversary", "guess"] if settings.adversary.view == "guess" else []
    drawn = ["--seed", str(SEED)] if settings.delta is not None else []
    drawn += [] if asked.sampling.draws is None else ["--draws", str(asked.sampling.draws)]
    plan, reports = f"{stem}.plan.toml", f"{stem}.reports.parquet"
    lines = [
        ["sidelight", "audit", name, plan, *reading, *secrets, *asked_for, *drawn,
         "--report", f"{stem}.report.html"],
        ["sidelight", "collect", name, "--plan", plan, *reading, "--seed", str(SEED), "-o", reports],
        ["sidelight", "estimate", reports],
    ]  # fmt: skip
    words = (
        "What the plan reveals; exit code 1 where a limit is not certified to be kept.",
        "Simulated reports: real ones are made on people's devices, without a seed.",
        "What these reports say about the frequencies of every attribute.",
    )
    head = (
        "#!/bin/sh\n# Made by the studio. Beside this file: the table, and the plan and the data dictionary "
        "that were exported with it.\n"
    )
    return head + "".join(
        f"\n# {said}\n{shlex.join(line)}\n" for said, line in zip(words, lines, strict=True)
    )


def _secret(name: str, limits: Mapping[str, float]) -> str:
    """Return a secret as the option takes it; a name with an = says its limit, or its end would be one."""
    return f"{name}={limits[name]!r}" if "=" in name and name in limits else name


def _report(asked: Snapshot) -> str:
    with TemporaryDirectory() as folder:
        return write_report(asked.audited(), Path(folder) / "report.html").read_text(encoding="utf-8")


def _notebook(asked: Snapshot) -> str:
    """Return a notebook that does the same in Python."""
    stem, settings = asked.stem, asked.document.settings
    reading = "".join(f", {key}={part!r}" for key, part in _source(asked).items())
    secrets = [item.name for item in settings.secrets] or None
    sampling = f"sl.auditing.Sampling(draws={asked.sampling.draws}, seed={SEED})"
    cells = [
        ("markdown", f"# What {asked.opened.place.name} gives away\n\nMade by the studio of Sidelight."),
        ("code", "import sidelight as sl\n\n"
         f"plan = sl.Plan.read({f'{stem}.plan.toml'!r})\n"
         f"dictionary = sl.sources.Dictionary.read({f'{stem}.schema.toml'!r})\n"
         f"table = sl.read({asked.opened.place.name!r}, schema=plan.schema, rest=dictionary{reading})\n"
         "belief = sl.Belief.from_data(table)"),
        ("code", f"audit = sl.audit(belief, plan, {secrets!r}, adversary={settings.adversary.view!r},\n"
         f"                 sampling={sampling})\naudit"),
        ("markdown", "A simulated collection, and what it estimates."),
        ("code", f"estimates = sl.estimate(sl.collect(table, plan, seed={SEED}))\nestimates"),
    ]  # fmt: skip
    return json.dumps({"cells": [_cell(at, *cell) for at, cell in enumerate(cells)], "metadata": {},
                       "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"  # fmt: skip


def _cell(at: int, kind: str, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, "source": lines}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


EXPORTS: dict[str, tuple[str, str, Callable[[Snapshot], str]]] = {
    "plan": ("plan.toml", _TOML, _plan),
    "project": ("project.toml", _TOML, _project),
    "schema": ("schema.toml", _TOML, _schema),
    "report": ("report.html", _HTML, _report),
    "notebook": ("ipynb", _NOTEBOOK, _notebook),
    "commands": ("sh", _SHELL, _commands),
    "state": ("studio.json", "application/json", _state),
}
"""By kind the ending of the file's name, its media type, and what makes it."""
