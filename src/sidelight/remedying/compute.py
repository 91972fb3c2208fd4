"""`remedies`: the ways back under the limits of an audit, with their price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from sidelight.auditing import Audit, SecretAudit
from sidelight.auditing.verdict import keeps
from sidelight.foundation.errors import InputError, check_is, check_number, check_whole, unknown
from sidelight.foundation.progress import track
from sidelight.leakage import DeltaLeakage
from sidelight.remedying.kinds import Search, deciding, is_told
from sidelight.remedying.result import Exposed, Remedies

_MOST_SINGLE = 3
"""Of several secrets over their limits so many, the worst, are also remedied alone."""
_USUAL_PEOPLE = 10_000
"""Who reports where a belief was given by hand and has no records to count."""


def remedies(
    audit: Audit,
    *,
    people: int | None = None,
    within: float = 0.02,
    limit: float | None = None,
    limits: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Remedies:
    """Find the cheapest ways back under the limits of all secrets that are over them.

    A secret counts as over its limit unless it is certified to keep it, for the adversary who decides in the
    audit. Every remedy is certified for that adversary.

    Args:
        audit: of the plan as it is.
        people: how many will report; as many as the belief has records by default.
        within: the wanted precision, a root-mean-square error of every attribute, for the people needed.
        limit: of every audited secret, for an audit without limits, or instead of its own.
        limits: the limit of single secrets, where it differs.
        seed: for certificates that can be repeated; else the operating system's coins.
    """
    check_is("audit", audit, Audit, "sl.audit(belief, plan) makes one.")
    usual = audit.belief.sample_size or _USUAL_PEOPLE
    asked = check_whole("people", usual if people is None else people, at_least=1)
    check_number("within", within, above=0, below=1)
    if audit.min_support:
        raise InputError(
            "remedies have figures of their own, which would show what min_support hides in the audit; "
            "audit without min_support to find remedies."
        )
    stated = _limits(audit, limit, limits)
    over = {name: value for name, value in stated.items() if not keeps(deciding(audit[name]).value, value)}
    over = dict(sorted(over.items(), key=lambda each: -_over(deciding(audit[each[0]]).value, each[1])))
    coins = np.random.default_rng(None if seed is None else check_whole("seed", seed, at_least=0))
    if not over:
        return Remedies(audit, over, None, (), (), asked, within)
    found = Search(audit, over, stated, asked, within, coins)
    made = found.all()
    single = {}
    if len(over) > 1:
        for name in track(list(over)[:_MOST_SINGLE], "secrets one by one"):
            alone = Search(audit, {name: over[name]}, {name: over[name]}, asked, within, coins)
            single[name] = tuple(sorted(alone.quick(), key=lambda item: item.loss))
    told = over if is_told(audit) else {}
    exposed = tuple(_exposed(audit[name], value, asked) for name, value in told.items())
    return Remedies(
        audit, over, found.now, made, exposed, asked, within, found.missing, single, found.curve()
    )


def _over(figure: float, limit: float) -> float:
    return figure / limit if limit > 0 else math.inf


def _limits(audit: Audit, limit: float | None, limits: Mapping[str, float] | None) -> dict[str, float]:
    """Return the limit of every audited secret that has one."""
    given = dict(limits or {})
    for name in given:
        if name not in audit.secrets:
            raise unknown("audited secret", name, list(audit.secrets))
    if limit is not None:
        check_number("limit", limit, at_least=0, infinite=True)
    stated = {}
    for name, item in audit.secrets.items():
        value = given.get(name, item.limit if limit is None else limit)
        if value is None:
            continue
        if math.isfinite(check_number(f"limit of {name}", value, at_least=0, infinite=True)):
            stated[name] = value
    if not stated:
        raise InputError(
            "remedies need a limit to come back under, and the audit has none; give one, as in limit=1.0."
        )
    return stated


def _exposed(item: SecretAudit, limit: float, people: int) -> Exposed:
    """Return how many people's reports say more than the limit to whoever decides."""
    assert item.deciding is not None  # noqa: S101 - asked for audits that tell the story who decides
    leakage: DeltaLeakage = item.deciding.leakage
    below = int(np.searchsorted(leakage.moves, limit + 1e-9, side="right"))
    share = 1.0 - (float(leakage.shares[below - 1]) / float(leakage.shares[-1]) if below else 0.0)
    kind: Literal["exact", "estimate"] = "estimate" if leakage.draws else "exact"
    return Exposed(item.secret, limit, people, max(share, 0.0) if share > 1e-12 else 0.0, kind)
