"""The steps of a run: each computes one thing, writes its files, and returns plain facts about it.

The facts are all that later steps and the first page need, so that a step found in the cache costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sidelight.attacks import AttackComparison, BayesAttacker, attack
from sidelight.auditing import NAMES, Audit, Sampling, SecretAudit, audit
from sidelight.belief import Belief
from sidelight.calibration import Calibration, calibrate
from sidelight.estimation import estimate
from sidelight.estimation.usefulness import people_for_use, people_needed, usefulness
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_plain, write_text
from sidelight.plan import Plan
from sidelight.project.bench import Bench
from sidelight.project.cache import Entry
from sidelight.project.file import CALIBRATE
from sidelight.protocols import planned
from sidelight.report import write_report
from sidelight.report.attack import verdict_sentence
from sidelight.report.audit_figures import worst_first
from sidelight.report.stories import deciding_witness, headline
from sidelight.transport import collect, read_reports, write_reports

Done = Mapping[str, Entry]
"""The steps that were done before, by name."""
Facts = dict[str, Any]
REPORTS = "simulated.parquet"
PLAN = "plan.toml"
_FRONTIER = (0.25, 0.5, 1.0, 2.0, 4.0)  # evenly spread on the logarithmic axis of the figure
_MOST_ATTACKED = 8
_UNNAMED_ATTACKED = 3


def audit_step(bench: Bench, done: Done, place: Path) -> Facts:  # noqa: ARG001 - the first step
    """Audit the plan as stated."""
    result = audited(bench, bench.stated)
    write_report(result, place / "audit.html")
    write_text(place / "audit.json", result.to_json() + "\n")
    items = worst_first(result)
    over = [item.secret for item in items if item.decision in ("exceeded", "not certified")]
    facts = {
        "judged": bool(result.judged), "within": result.is_within, "over": over, "worst": told(items[0]),
        "secrets": [told(item) for item in items], "notes": bench.table.notes(), "records": bench.table.rows,
        "attributes": len(bench.table.schema), "source": result.belief.source,
    }  # fmt: skip
    return dict(json_plain(facts))


def audited(bench: Bench, plan: Plan) -> Audit:
    """Return the audit of a plan, for the project's secrets."""
    return audit(bench.belief, plan, bench.secrets, sampling=Sampling(seed=bench.project.seed))


def told(item: SecretAudit) -> Facts:
    """Return what the first page says of a secret."""
    witness = deciding_witness(item)
    figure = item.worst_case.upper if item.deciding is None else item.deciding.leakage.upper
    return {
        "secret": item.secret, "headline": headline(item), "leakage": figure.value, "kind": figure.kind,
        "limit": item.limit, "verdict": item.statement, "decision": item.decision,
        "to": NAMES[item.decide_by], "likelier": None if witness is None else witness.likelier,
        "unlikelier": None if witness is None else witness.unlikelier,
    }  # fmt: skip


def plan_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Calibrate where budgets are to be found, or where those that are stated break a limit."""
    found = done["audit"].facts
    is_open = bench.project.release.budgets == CALIBRATE
    if not found["judged"] or not (is_open or found["over"]):
        bench.stated.write(place / PLAN)
        reason = "no secret has a limit" if not found["judged"] else "the stated budgets keep every limit"
        return {"calibrated": False, "reason": reason, "within": found["within"]}
    try:
        result = calibrated(bench)
    except InputError as error:  # limits that no budget can keep, which is an answer too
        bench.stated.write(place / PLAN)
        return {"calibrated": False, "reason": str(error), "within": found["within"]}
    bench.kept(result.plan).write(place / PLAN)
    write_report(result, place / "calibration.html")
    write_text(place / "calibration.json", result.to_json() + "\n")
    within = bool(result.is_within)
    return {
        "calibrated": True, "reason": "", "within": within if is_open else found["within"],
        "keeps": within, "budgets": {item.name: item.epsilon for item in result.plan.releases},
        "notes": result.notes(),
    }  # fmt: skip


def calibrated(bench: Bench) -> Calibration:
    """Return the largest budgets that keep the project's limits."""
    project, delta = bench.project, bench.delta_of_limits
    limits = {name: limit for name, limit in project.limits.items() if limit < math.inf}
    return calibrate(
        bench.belief, None if project.secrets else project.limit, limits=limits, secrets=list(limits) or None,
        mechanism=project.release.mechanism, mechanisms=project.release.mechanisms, reports=bench.people,
        delta=delta, decide_by="report" if delta is None else bench.decider,
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
    write_report(compared, place / "collection.html")
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
        "worse": list(use.worse),
    }  # fmt: skip
    return dict(json_plain(facts))


def attack_step(bench: Bench, done: Done, place: Path) -> Facts:
    """Attack the simulated reports with a belief learnt apart from the people attacked."""
    reports = read_reports(done["collection"].files[REPORTS])
    worst = [item["secret"] for item in done["audit"].facts["secrets"]]
    attacked = worst[: _MOST_ATTACKED if bench.project.secrets else _UNNAMED_ATTACKED]
    belief = bench.belief if bench.belief.kind == "joint" else Belief.tree_of(bench.belief)
    attacker = BayesAttacker(belief)
    results = {name: attack(reports, attacker, secret=name, truth=bench.table) for name in attacked}
    comparison = AttackComparison("Inference of the secrets from simulated reports", results, ())
    write_report(comparison, place / "attack.html")
    write_text(place / "attack.json", comparison.to_json() + "\n")
    return {
        "outcome": "", "sentence": verdict_sentence(comparison), "attacked": attacked,
        "left": worst[len(attacked) :],
    }  # fmt: skip


COMPUTE: dict[str, Callable[[Bench, Done, Path], Facts]] = {
    "audit": audit_step, "plan": plan_step, "collection": collection_step, "estimates": estimates_step,
    "attack": attack_step,
}  # fmt: skip
"""What computes each step of a run, by its name."""
