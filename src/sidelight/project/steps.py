"""The steps of a run: each computes one thing, writes its files, and returns plain facts about it.

The facts are all that later steps and the first page need, so that a step found in the cache costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidelight.attacks import AttackComparison, rehearse
from sidelight.auditing import Audit, SecretAudit
from sidelight.calibration import Calibration, calibrate
from sidelight.estimation import estimate
from sidelight.estimation.affordable import affordable
from sidelight.estimation.usefulness import people_for_use, people_needed, usefulness
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_plain, write_text
from sidelight.foundation.progress import track
from sidelight.plan import LARGEST_EPSILON, Plan
from sidelight.project.bench import Bench
from sidelight.project.cache import Entry
from sidelight.project.file import CALIBRATE
from sidelight.protocols import planned
from sidelight.remedying import Remedy, remedies
from sidelight.report import write_report
from sidelight.report.assessment import write_assessment
from sidelight.report.audit_figures import worst_first
from sidelight.report.summary import for_whom, worst_risk
from sidelight.report.ways import Answer
from sidelight.report.wording import unmarked
from sidelight.transport import collect, read_reports, write_reports

Done = Mapping[str, Entry]
"""The steps that were done before, by name."""
Facts = dict[str, Any]
REPORTS = "simulated.parquet"
PLAN = "plan.toml"
HOME = "index.html"
_FRONTIER = (0.25, 0.5, 1.0, 2.0, 4.0)  # evenly spread on the logarithmic axis of the figure
_MOST_ATTACKED = 8
_UNNAMED_ATTACKED = 3
_MOST_REMEDIES = 3
_USUAL_PRECISION = 0.02
_WORST = ("tells", "open", "clear")
"""The outcomes of an attack, the most damning first."""


def audit_step(bench: Bench, done: Done, place: Path) -> Facts:  # noqa: ARG001 - the first step
    """Audit the plan as stated."""
    result = bench.audit
    write_report(result, place / "audit.html", home=HOME)
    write_text(place / "audit.json", result.to_json() + "\n")
    items = worst_first(result)
    over = [item.secret for item in items if item.decision in ("exceeded", "not certified")]
    facts = {
        "judged": bool(result.judged), "within": result.is_within, "over": over,
        "risk": _said(worst_risk(result, items)), "whom": _said(for_whom(result, items)),
        "secrets": [told(item) for item in items], "notes": bench.table.notes(), "records": bench.table.rows,
        "attributes": len(bench.table.schema), "source": result.belief.source,
    }  # fmt: skip
    return dict(json_plain(facts))


def _said(answer: Answer) -> str:
    return unmarked(" ".join((answer.short, *answer.details)))


def told(item: SecretAudit) -> Facts:
    """Return what the first page says of a secret."""
    figure = item.worst_case.upper if item.deciding is None else item.deciding.leakage.upper
    return {
        "secret": item.secret, "leakage": figure.value, "kind": figure.kind,
        "limit": item.limit, "verdict": item.statement, "decision": item.decision,
    }  # fmt: skip


def remedies_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Look for the cheapest ways back under the limits, where any is broken or not certified to be kept."""
    found = done["audit"].facts
    if not found["over"]:
        reason = "every secret keeps its limit" if found["judged"] else "no secret has a limit"
        return {"said": f"none needed: {reason}", "remedies": []}
    wanted = bench.project.wanted.precision
    within = _USUAL_PRECISION if wanted is None else wanted
    result = remedies(bench.audit, people=bench.people, within=within, seed=bench.project.seed)
    write_report(result, place / "remedies.html", home=HOME)
    write_text(place / "remedies.json", result.to_json() + "\n")
    listed = result.remedies[:_MOST_REMEDIES]
    for number, item in enumerate(listed, 1):
        item.write(place / f"remedy-{number}.toml")
    return {
        "said": result.headline(),
        "remedies": [_remedy(number, item) for number, item in enumerate(listed, 1)],
    }


def _remedy(number: int, item: Remedy) -> Facts:
    """Return what the first page says of a remedy."""
    facts = {
        "says": item.says, "file": f"remedy-{number}.toml", "attributes": item.attributes,
        "error": item.error, "people_needed": item.people_needed, "use": item.use.headline(),
        "verdict": item.use.verdict,
    }  # fmt: skip
    return dict(json_plain(facts))


def plan_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Calibrate where budgets are to be found, or where those that are stated break a limit."""
    found = done["audit"].facts
    is_open = bench.given is None and bench.project.release.budgets == CALIBRATE
    if not found["judged"] or not (is_open or found["over"]):
        _write_plan(bench.audit, place)
        reason = "no secret has a limit" if not found["judged"] else "the stated budgets keep every limit"
        return {"calibrated": False, "reason": reason, "within": found["within"]}
    try:
        result = calibrated(bench)
    except InputError as error:  # limits that no budget can keep, which is an answer too
        _write_plan(bench.audit, place)
        return {"calibrated": False, "reason": str(error), "within": found["within"]}
    result = replace(result, within=bench.project.wanted.precision)
    planned_audit = replace(result.strictest, plan=bench.kept(result.plan))
    _write_plan(planned_audit, place)
    write_report(result, place / "calibration.html", home=HOME)
    write_text(place / "calibration.json", result.to_json() + "\n")
    within = bool(result.is_within)
    return {
        "calibrated": True, "reason": "", "within": within if is_open else found["within"],
        "keeps": within, "risk": unmarked(worst_risk(planned_audit, worst_first(planned_audit)).short),
        "budgets": {item.name: item.epsilon for item in result.plan.releases},
        "notes": result.notes(),
    }  # fmt: skip


def _write_plan(result: Audit, place: Path) -> None:
    """Write the plan to collect by, and the draft of a data protection assessment of it."""
    result.plan.write(place / PLAN)
    write_assessment(result, place / "assessment.md")


def calibrated(bench: Bench) -> Calibration:
    """Return the largest budgets that keep the project's limits."""
    project, delta = bench.project, bench.delta_of_limits
    limits = {name: limit for name, limit in project.limits.items() if limit < math.inf}
    return calibrate(
        bench.belief, None if project.secrets else project.limit, limits=limits, secrets=list(limits) or None,
        plan=bench.given, mechanism=project.release.mechanism, mechanisms=project.release.mechanisms,
        reports=bench.people, delta=delta, decide_by="report" if delta is None else bench.decider,
        seed=None if delta is None else project.seed, frontier=_FRONTIER, compare=True,
    )  # fmt: skip


def collection_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Make the reports that the people of the table would send; nothing leaves this machine."""
    plan = Plan.read(done["plan"].files[PLAN])
    reports = collect(bench.table, plan, seed=bench.project.seed)
    write_reports(reports, place / REPORTS)
    return {"people": reports.people, "epsilon": json_plain(reports.protocol.epsilon)}


def estimates_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Estimate frequencies from the simulated reports, and say what the expected people would give."""
    reports = read_reports(done["collection"].files[REPORTS])
    names = reports.protocol.schema.names
    truth = {name: bench.frequencies[name] for name in names}
    compared = estimate(reports).against(truth)
    write_report(compared, place / "collection.html", home=HOME)
    compared.write(place / "estimates.csv")
    write_text(place / "estimates.json", compared.to_json() + "\n")
    design = planned(Plan.read(done["plan"].files[PLAN]))
    use = usefulness(design, bench.people, truth)
    precision = bench.project.wanted.precision
    facts = {
        "headline": use.headline(), "verdict": use.verdict, "expected_people": bench.people,
        "simulated_people": reports.people, "error": use.error, "simulated_error": compared.error,
        "people_for_use": people_for_use(design, truth), "precision": precision,
        "people_needed": None if precision is None else people_needed(design, precision, truth),
        "worse": list(use.worse), "affordable": [] if use.beats_guessing else _affordable(bench),
    }  # fmt: skip
    return dict(json_plain(facts))


def _affordable(bench: Bench) -> list[str]:
    """Return the attributes that could be collected usefully within every limit, one drawn for each person.

    A record's budget as large as the smallest limit keeps every limit, whatever the population is.
    """
    project = bench.project
    stated = (
        *project.limits.values(),
        *(() if project.secrets or project.limit is None else (project.limit,)),
    )
    least = min(stated, default=math.inf)
    if not 0 < least < LARGEST_EPSILON:
        return []
    found = affordable(bench.table.schema, least, bench.people, bench.frequencies)
    return [] if found is None else list(found.names)


def attack_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Attack the simulated reports with a belief learnt apart from the people attacked."""
    reports = read_reports(done["collection"].files[REPORTS])
    worst = [item["secret"] for item in done["audit"].facts["secrets"]]
    attacked = worst[: _MOST_ATTACKED if bench.project.secrets else _UNNAMED_ATTACKED]
    found = {name: rehearse(reports, bench.table, name) for name in track(attacked, "attacks")}
    results = {name: next(iter(item.results.values())) for name, item in found.items()}
    notes = tuple(dict.fromkeys(note for item in found.values() for note in item.notes))
    comparison = AttackComparison("Inference of the secrets from simulated reports", results, notes)
    write_report(comparison, place / "attack.html", home=HOME)
    write_text(place / "attack.json", comparison.to_json() + "\n")
    verdicts = sorted((result.verdict for result in results.values()), key=lambda x: _WORST.index(x.outcome))
    return {
        "outcome": verdicts[0].outcome, "sentence": verdicts[0].sentence, "attacked": attacked,
        "left": worst[len(attacked) :], "notes": list(notes),
    }  # fmt: skip


COMPUTE: dict[str, Callable[[Bench, Done, Path], Facts]] = {
    "audit": audit_step, "remedies": remedies_step, "plan": plan_step, "collection": collection_step,
    "estimates": estimates_step, "attack": attack_step,
}  # fmt: skip
"""What computes each step of a run, by its name."""
