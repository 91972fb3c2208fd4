"""What a project file has decided, as the studio's settings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

from sidelight.foundation.errors import InputError
from sidelight.plan import AdversaryName, Plan, Release
from sidelight.project.file import CALIBRATE, Project
from sidelight.studio import messages as said
from sidelight.studio.document import MENU, Choice, Draft, check_adversary
from sidelight.studio.jobs import choices_of as planned_choices
from sidelight.studio.opened import Opened

_PRECISION = 0.02


def settings_of(project: Project) -> said.Settings:
    """Return a project's secrets, limits and adversary."""
    decider = project.protect.decide_by
    known: tuple[AdversaryName, ...] = get_args(AdversaryName)
    chosen = next((name for name in known if name == decider), None)
    if decider is not None and chosen is None:
        raise InputError(
            f"{project.file}: nobody is called {decider!r}; `decide_by` is one of {', '.join(known)}."
        )
    adversary = said.Adversary(
        view="guess" if chosen == "guess" else project.protect.adversary, decide_by=chosen
    )
    check_adversary(adversary, project.protect.delta)
    secrets = [
        said.Secret(name=name, limit=_finite(item.limit), reason=item.reason)
        for name, item in project.secrets.items()
    ]
    return said.Settings(
        secrets=secrets, limit=_finite(project.protect.limit), adversary=adversary,
        delta=project.protect.delta, people=project.wanted.people or 0,
        precision=project.wanted.precision or _PRECISION,
        purpose=project.purpose,
    )  # fmt: skip


def choices_of(project: Project, opened: Opened) -> dict[str, Choice]:
    """Return how a project releases attributes; budgets that are to be calibrated start at its first one."""
    if project.plan_file is not None:
        return _choices_of_plan(project.plan_file, opened)
    release = project.release
    choices = {}
    for name in opened.schema.names:
        mechanism = release.mechanisms.get(name, release.mechanism)
        budgets = release.budgets
        stated = budgets.get(name) if isinstance(budgets, dict) else None if budgets == CALIBRATE else budgets
        choices[name] = Choice(
            mechanism=mechanism if mechanism in MENU else "grr", withheld=mechanism == "withheld",
            epsilon=release.epsilon if stated is None else float(stated),
        )  # fmt: skip
    return choices


def _choices_of_plan(path: Path, opened: Opened) -> dict[str, Choice]:
    """Return the choices that a plan is made of; values must be coded as the table's or as they coarsen."""
    plan = Plan.read(path)
    choices = planned_choices(opened, plan)
    coarse = opened.coarsenings(Draft(id="given", name="given", choices=choices))
    for release in plan.releases:
        name = release.name
        known = coarse[name].coarse if name in coarse else opened.schema[name]
        plain = Release(known, release.mechanism, release.epsilon)
        if release.mechanism not in MENU or replace(release, reason="") != plain:
            raise InputError(
                f"{path} releases {name!r} in a way that the studio does not offer; use the commands on it."
            )
    return choices


def _finite(limit: float | str | None) -> float | None:
    """Return a limit; one that is infinite limits nothing."""
    return None if limit is None or math.isinf(float(limit)) else float(limit)
