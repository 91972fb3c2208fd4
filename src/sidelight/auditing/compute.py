"""Compute an audit: the leakage room's figures, put together for every secret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sidelight.auditing.result import SUPPRESSED, Audit, SecretAudit, published_sum
from sidelight.auditing.suppression import suppressed
from sidelight.auditing.verdict import AdversaryName, adversary_of, check_decider
from sidelight.belief import Belief, Credal, check_belief
from sidelight.foundation.errors import InputError, check_is, check_whole
from sidelight.foundation.progress import track
from sidelight.leakage import (
    AverageLeakage,
    Bound,
    Leakage,
    Synergy,
    average_leakage,
    direct_leakage,
    pair_matrix,
    robust_pair,
    robust_total,
    synergy_scan,
    total_leakage,
    tree_totals,
)
from sidelight.leakage.families import delta_of
from sidelight.leakage.totals.total import TotalMethod, composition
from sidelight.mechanisms import Channel
from sidelight.plan import PLAN_FIX, Plan, View


def audit(
    belief: Belief,
    plan: Plan,
    secrets: Iterable[str] | None = None,
    *,
    method: TotalMethod = "auto",
    adversary: View = "report",
    model: bool = False,
    confidence: float | None = None,
    synergies: int = 0,
    min_support: int = 0,
    decide_by: AdversaryName = "report",
) -> Audit:
    """Compute what a plan reveals about each secret to an adversary who holds the belief.

    Args:
        belief: what the adversary knows.
        plan: what is released.
        secrets: the attributes to protect; all of the belief's by default.
        method: of the upper end of the total, see `total_leakage`.
        adversary: "report" keeps whole reports; "guess" keeps one guessed value of each, as published
            comparisons do.
        model: also give the total for an adversary who models the population as a tree.
        confidence: also give figures that hold together with this confidence over all that the sample leaves
            open.
        synergies: how many pairs of reports to name that say more together than apart.
        min_support: replace figures that rest on fewer records by what the budgets alone say.
        decide_by: for whom the limits must be kept: an adversary who sees the whole "report" and knows the
            table, or a weaker one that is asked for: "guess", "model", or "model guess" for both. It
            changes no figure.
    """
    check_belief("belief", belief)
    check_is("plan", plan, Plan, PLAN_FIX)
    check_whole("min_support", min_support, at_least=0)
    check_whole("synergies", synergies, at_least=0)
    names = _secrets(belief, plan, secrets)
    check_plan(belief, plan)
    channels = plan.channels(adversary)
    check_decider(decide_by, adversary, is_model=belief.is_model, has_model=model)
    pairs = pair_matrix(belief, channels, names)
    models = tree_totals(Belief.tree_of(belief), channels, names) if model else {}
    credal = None if confidence is None else belief.credal(confidence)
    reports = channels if adversary == "report" else plan.channels()
    audited = {}
    for column, name in enumerate(track(names, "totals")):
        neighbours = [leakage for row in pairs if (leakage := row[column]) is not None]
        found = _secret_audit(belief, plan, channels, name, neighbours, method)
        found = replace(found, model=models.get(name), **_robust(credal, channels, name))
        found = _with_adversary(found, belief, reports, adversary, decide_by)
        if min_support:
            counts = belief.support(name)
            rare = counts is not None and bool(((counts > 0) & (counts < min_support)).any())
            found = suppressed(found, channels, reports, min_support, has_rare_value=rare)
        audited[name] = found
    return Audit(
        belief,
        plan,
        audited,
        min_support,
        adversary,
        confidence,
        _synergies(belief, channels, audited, synergies, min_support),
    )


def _secrets(belief: Belief, plan: Plan, secrets: Iterable[str] | None) -> list[str]:
    """Return the names of the secrets after checking that they and all limits are of known attributes."""
    if secrets is None:
        names = list(belief.schema.names)
    else:
        names = [secrets] if isinstance(secrets, str) else list(secrets)
    if not names:
        raise InputError("`secrets` must name at least one attribute, got none.")
    for name in names:
        belief.schema.index(name)
    for name in plan.limits:
        if name not in belief.schema:
            raise InputError(
                f"the plan has a limit for {name!r}, which is not among the table's attributes: "
                f"{', '.join(belief.schema.names)}."
            )
    return names


def check_plan(belief: Belief, plan: Plan) -> None:
    """Raise if the plan releases attributes the belief does not know, or codes them otherwise."""
    for release in plan.releases:
        if release.name not in belief.schema:
            raise InputError(
                f"the plan releases {release.name!r}, which is not among the table's attributes: "
                f"{', '.join(belief.schema.names)}."
            )
        known = belief.schema[release.name]
        if (known.values, known.edges) != (release.attribute.values, release.attribute.edges):
            raise InputError(
                f"the plan and the table disagree about the values of {release.name!r} "
                f"({release.attribute.size} and {known.size}); read the table with schema=plan.schema."
            )


def _secret_audit(
    belief: Belief,
    plan: Plan,
    channels: Mapping[str, Channel],
    name: str,
    neighbours: list[Leakage],
    method: TotalMethod,
) -> SecretAudit:
    """Put a secret's figures together."""
    neighbours.sort(key=lambda leakage: -leakage.value)
    direct = direct_leakage(belief, channels.get(name), name)
    prior = belief.prior(name)
    code = int(prior.argmax())
    return SecretAudit(
        name,
        plan.limit_of(name),
        direct,
        tuple(neighbours),
        total_leakage(belief, channels, name, method),
        published_sum(direct, neighbours),
        (belief.schema[name].values[code], float(prior[code])),
        _averages(belief, channels, name, neighbours),
    )


def _with_adversary(
    item: SecretAudit, belief: Belief, reports: Mapping[str, Channel], view: View, decide_by: AdversaryName
) -> SecretAudit:
    """Say whose figure a total is; beside that of a weaker adversary put the one for the whole report."""
    who = adversary_of(view, is_model=belief.is_model and not item.total.is_exact)
    whole = None if who == "report" else _whole(belief, reports, item.secret)
    return replace(item, adversary=who, whole=whole, decide_by=decide_by)


def _whole(belief: Belief, reports: Mapping[str, Channel], secret: str) -> Leakage:
    """Return the total for whoever knows the table and keeps whole reports, as far as it can be told.

    A model has the table's marginals, but says nothing sure about how its attributes go together: what is
    left is what the secret's own report reaches, and the sum of all budgets.
    """
    if not belief.is_model:
        return total_leakage(belief, reports, secret)
    own = direct_leakage(belief, reports.get(secret), secret).lower
    delta = math.fsum(delta_of(channel) for channel in reports.values())
    lower = Bound(own.value, "lower", "own report alone")
    return Leakage(secret, tuple(reports), lower, composition(reports), delta)


def _averages(
    belief: Belief, channels: Mapping[str, Channel], secret: str, neighbours: Iterable[Leakage]
) -> dict[str, AverageLeakage]:
    """Return the average case of each neighbour whose reports can be listed."""
    found = {}
    for name in (leakage.through[0] for leakage in neighbours):
        if channels[name].family in ("singletons", "dense"):
            found[name] = average_leakage(belief, channels[name], secret, name)
    return found


def _robust(credal: Credal | None, channels: Mapping[str, Channel], secret: str) -> dict[str, Any]:
    """Return the figures that hold for every distribution the sample leaves open."""
    if credal is None:
        return {}
    others = [name for name in channels if name != secret]
    return {
        "robust": robust_total(credal, channels, secret),
        "robust_neighbours": {name: robust_pair(credal, channels[name], secret, name) for name in others},
    }


def _synergies(
    belief: Belief,
    channels: Mapping[str, Channel],
    audited: Mapping[str, SecretAudit],
    most: int,
    min_support: int,
) -> tuple[Synergy, ...]:
    """Return the pairs of reports that say more together than apart, leaving out those of few records."""
    if not most:
        return ()
    found = synergy_scan(belief, channels, list(audited), top=most)
    hidden = {
        (name, leakage.through[0])
        for name, item in audited.items()
        for leakage in item.neighbours
        if leakage.upper.method == SUPPRESSED
    }
    return tuple(
        item
        for item in found
        if item.excess > 0
        and (item.support is None or item.support >= min_support)
        and not {(item.secret, item.first), (item.secret, item.second)} & hidden
    )
