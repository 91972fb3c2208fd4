"""What a project file has decided, as the studio's settings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import get_args

from sidelight.foundation.errors import InputError
from sidelight.plan import AdversaryName, Plan, Release
from sidelight.project.file import CALIBRATE, Project
from sidelight.schema import Attribute
from sidelight.studio import messages as said
from sidelight.studio.document import MENU, WITHHELD, Choice, Draft, check_adversary
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
    release, choices = project.release, dict[str, Choice]()
    for name in opened.schema.names:
        mechanism = release.mechanisms.get(name, release.mechanism)
        if mechanism not in (*MENU, WITHHELD):
            raise _not_offered(str(project.file), name, _by(mechanism))
        budgets = release.budgets
        stated = budgets.get(name) if isinstance(budgets, dict) else None if budgets == CALIBRATE else budgets
        choices[name] = Choice(
            mechanism=mechanism if mechanism in MENU else "grr", withheld=mechanism == WITHHELD,
            epsilon=release.epsilon if stated is None else float(stated),
        )  # fmt: skip
    return _some_released(str(project.file), choices)


def _choices_of_plan(path: Path, opened: Opened) -> dict[str, Choice]:
    """Return the choices that a plan is made of; values must be coded as the table's or as they coarsen."""
    plan = Plan.read(path)
    choices = planned_choices(opened, plan)
    coarse = opened.coarsenings(Draft(id="given", name="given", choices=choices))
    for release in (item for item in plan.releases if item.mechanism != WITHHELD):
        name = release.name
        known = coarse[name].coarse if name in coarse else opened.schema[name]
        if unlike := _unlike(release, known):
            raise _not_offered(str(path), name, unlike)
    return _some_released(str(path), choices)


def _some_released(file: str, choices: dict[str, Choice]) -> dict[str, Choice]:
    """Return the choices; raise if nothing is released, of which there is nothing to show."""
    if all(choice.withheld for choice in choices.values()):
        raise InputError(f"{file} withholds every attribute; release at least one.")
    return choices


def _not_offered(file: str, name: str, unlike: str) -> InputError:
    """Return why a file cannot be opened: figures of another release would be shown for this one."""
    return InputError(
        f"{file} releases {name!r} in a way that the studio does not offer ({unlike}); the "
        "commands do: `sidelight run` takes a project, `sidelight audit` a plan."
    )


def _by(mechanism: str) -> str:
    return f"the mechanism {mechanism}; it offers {', '.join(MENU)}"


def _unlike(release: Release, known: Attribute) -> str:
    """Say what a release has that no release of the studio has; nothing where it has nothing such."""
    if release.mechanism not in MENU:
        return _by(release.mechanism)
    if release.attribute != known:
        return "values that are coded or grouped otherwise than the table's"
    if release.times > 1:
        return f"{release.times} reports a person"
    plain = Release(known, release.mechanism, release.epsilon, reason=release.reason)
    return "" if release == plain else "parameters or a memory of its own"


def _finite(limit: float | str | None) -> float | None:
    """Return a limit; one that is infinite limits nothing."""
    return None if limit is None or math.isinf(float(limit)) else float(limit)
