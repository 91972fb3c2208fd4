"""Asking each person for one attribute: what such a report says, exactly where its reports can be listed."""

from __future__ import annotations

from sidelight.foundation.errors import InputError
from sidelight.leakage import Bound, total_leakage
from sidelight.leakage.bounds import Claim
from sidelight.leakage.totals.base import joint_claim
from sidelight.plan import Plan
from sidelight.protocols.direct import Sample
from sidelight.protocols.groups import make_group
from sidelight.remedying.gauge import AtDelta, Candidate, Gauge, WorstCase, listed_rows, sampled_figure
from sidelight.schema import Schema

_METHOD = "one report of a disclosed attribute"


def sample_of(candidate: Candidate) -> Sample | None:
    """Return the protocol that draws one attribute for each person, each as likely; None if it cannot be."""
    if len(candidate.releases) < 2 or any(item.times > 1 for item in candidate.releases):
        return None
    schema = Schema(tuple(item.attribute for item in candidate.releases))
    try:
        groups = tuple(
            make_group(schema, [item.name], item.mechanism, item.epsilon, item.parameters)
            for item in candidate.releases
        )
        return Sample(schema, groups, ())
    except InputError:
        return None


def sampled_bounds(gauge: Gauge, candidate: Candidate) -> dict[str, Bound]:
    """Return what one report, of an attribute that is drawn and disclosed, says about every secret."""
    return {secret: _bound(gauge, candidate, secret) for secret in gauge.limits}


def _bound(gauge: Gauge, candidate: Candidate, secret: str) -> Bound:
    if isinstance(gauge, AtDelta):
        return _at_delta(gauge, candidate, secret)
    assert isinstance(gauge, WorstCase)  # noqa: S101 - there are no others
    parts = [
        gauge.bounds(Candidate((release,)), [secret])[secret] for release in candidate.releases
    ]
    return _largest(parts)


def _largest(parts: list[Bound]) -> Bound:
    worst = max(parts, key=lambda bound: bound.value)
    kinds = {bound.kind for bound in parts}
    kind: Claim = worst.kind if len(kinds) == 1 else "certified" if kinds <= {"exact", "certified"} else worst.kind
    return Bound(worst.value, kind, _METHOD)


def _at_delta(gauge: AtDelta, candidate: Candidate, secret: str) -> Bound:
    share = 1 / len(candidate.releases)
    laws, beyond = [], []
    for release in candidate.releases:
        rows = listed_rows(gauge.belief, release, secret)
        if rows is not None:
            laws.append((share, rows))
        else:
            channels = Plan((release,)).channels()
            beyond.append(total_leakage(gauge.belief, channels, secret).upper.value)
    value = sampled_figure(laws, max(beyond, default=0.0), gauge.delta)
    channels = Plan(candidate.releases).channels()
    claim: Claim = "certified" if beyond else joint_claim(channels)
    return Bound(value, "model" if gauge.belief.is_model else claim, _METHOD)
