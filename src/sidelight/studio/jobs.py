"""Work that takes longer: calibrate, find remedies, simulate a collection, simulate an attack."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sidelight.attacks import rehearse
from sidelight.auditing import audit
from sidelight.calibration import calibrate
from sidelight.estimation import estimate
from sidelight.foundation.errors import InputError
from sidelight.plan import Plan
from sidelight.remedying import Remedy, remedies
from sidelight.studio import messages as said
from sidelight.studio.document import WITHHELD, Choice, Document
from sidelight.studio.figures import real
from sidelight.studio.final import SEED, sampling_of
from sidelight.studio.opened import Opened
from sidelight.transport import collect, true_frequencies

_MOST_ROWS = 2_000


@dataclass(frozen=True)
class Found:
    """What work has found: the message, and the choices that may be adopted, by their place."""

    result: said.WorkResult
    adoptable: tuple[Mapping[str, Choice], ...] = ()


def done(opened: Opened, document: Document, order: said.WorkOrder, work: str, revision: int) -> Found:
    """Do what was ordered."""
    draft = document.plan(order.plan)
    plan = opened.plan(document, draft)
    match order:
        case said.Calibrate():
            return _calibrated(opened, document, plan, order, work, revision)
        case said.FindRemedies():
            return _remedied(opened, document, plan, order, work, revision)
        case said.SimulateCollection():
            return _collected(opened, plan, order, work, revision)
        case said.SimulateAttack():
            return _attacked(opened, plan, order, work, revision)


def _check_limits(plan: Plan) -> None:
    if plan.limit is None and not plan.limits:
        raise InputError("nothing is limited yet; set a limit for the secrets first.")


def _calibrated(
    opened: Opened, document: Document, plan: Plan, order: said.Calibrate, work: str, revision: int
) -> Found:
    _check_limits(plan)
    settings = document.settings
    if settings.adversary.decide_by in (
        "report",
        "guess",
    ):  # what keeps a limit for reports keeps it for guesses
        plan = replace(plan, delta=None, decide_by=None)
    found = calibrate(
        opened.counted(plan), secrets=list(plan.limits) or None, plan=plan, reports=settings.people, seed=SEED
    )
    choices = choices_of(opened, found.plan)
    result = said.Calibrated(
        work=work, plan=order.plan, revision=revision, budgets=_budgets(opened, choices), words=found.notes()
    )
    return Found(result, (choices,))


def _remedied(
    opened: Opened, document: Document, plan: Plan, order: said.FindRemedies, work: str, revision: int
) -> Found:
    _check_limits(plan)
    settings = document.settings
    audited = audit(
        opened.counted(plan), plan, opened.secrets(document), sampling=sampling_of(opened, document, plan),
        adversary=settings.adversary.view,
    )  # fmt: skip
    found = remedies(audited, people=settings.people, within=settings.precision, seed=SEED)
    choices = [{} if item.plan is None else choices_of(opened, item.plan) for item in found]
    offers = [_offer(opened, item, made) for item, made in zip(found, choices, strict=True)]
    words = [found.headline(), *found.notes()]
    result = said.Remedied(work=work, plan=order.plan, revision=revision, offers=offers, words=words)
    return Found(result, tuple(choices))


def _offer(opened: Opened, item: Remedy, choices: Mapping[str, Choice]) -> said.RemedyOffer:
    words = [item.says, item.use.headline()]
    if item.people_needed is not None:
        words.append(f"The wanted precision needs {item.people_needed} people.")
    return said.RemedyOffer(
        title=item.title, words=words, outcome="within" if item.is_within else "not certified",
        error=real(item.loss), changed=_budgets(opened, choices), is_adoptable=item.plan is not None,
    )  # fmt: skip


def _collected(opened: Opened, plan: Plan, order: said.SimulateCollection, work: str, revision: int) -> Found:
    table = opened.table_of(plan)
    estimates = estimate(collect(table, plan, seed=order.seed))
    truth = true_frequencies(table, plan.schema)
    rows = []
    for item in estimates:
        code = plan.schema[item.attribute].code(item.value)
        rows.append(
            said.EstimateRow(
                attribute=item.attribute, value=item.value, truth=float(truth[item.attribute][code]),
                estimate=item.frequency, lower=item.lower, upper=item.upper,
            )
        )  # fmt: skip
    squares = [(row.truth - row.estimate) ** 2 for row in rows]
    error = math.sqrt(sum(squares) / len(squares))
    inside = sum(row.lower <= row.truth <= row.upper for row in rows)
    words = [f"{inside} of {len(rows)} intervals hold the truth; {100 * estimates.confidence:g} % should."]
    result = said.Collected(
        work=work, plan=order.plan, revision=revision, people=table.rows, rows=rows[:_MOST_ROWS],
        unlisted=max(len(rows) - _MOST_ROWS, 0), error=real(error), words=words,
    )  # fmt: skip
    return Found(result)


def _attacked(opened: Opened, plan: Plan, order: said.SimulateAttack, work: str, revision: int) -> Found:
    table = opened.table_of(plan)
    if order.secret not in table.schema:
        raise InputError(f"there is no attribute {order.secret!r} to attack.")
    compared = rehearse(collect(table, plan, seed=order.seed), table, order.secret)
    found = compared["Bayes"]
    right = {
        name: 1 - interval.value
        for name, interval in {"score": found.score, "control": found.control}.items()
    }
    result = said.Attacked(
        work=work, plan=order.plan, revision=revision, secret=order.secret, success=right["score"],
        lower=1 - found.score.upper, upper=1 - found.score.lower, baseline=right["control"],
        bound=None if found.limit is None else 1 - found.limit.value,
        words=[found.verdict.sentence, *compared.notes],
    )  # fmt: skip
    return Found(result)


def choices_of(opened: Opened, plan: Plan) -> dict[str, Choice]:
    """Return the choices that a plan is made of; what it does not name is withheld, as what it withholds."""
    choices = {name: Choice(withheld=True) for name in opened.schema.names}
    for release in (item for item in plan.releases if item.mechanism != WITHHELD):
        size = release.attribute.size
        coarse = None if size == opened.schema[release.name].size else size
        budget = 1.0 if release.epsilon is None else release.epsilon
        choices[release.name] = Choice(mechanism=release.mechanism, epsilon=budget, values=coarse)
    return choices


def _budgets(opened: Opened, choices: Mapping[str, Choice]) -> list[said.NewBudget]:
    return [
        said.NewBudget(
            attribute=name, mechanism=choice.mechanism, withheld=choice.withheld,
            epsilon=None if choice.withheld or choice.mechanism == "identity" else choice.epsilon,
            values=choice.values or opened.schema[name].size,
        )
        for name, choice in choices.items()
    ]  # fmt: skip
