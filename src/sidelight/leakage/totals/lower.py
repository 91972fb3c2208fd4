"""A figure that the total reaches: that of the best single neighbour, or of a search over all reports.

Any combination of reports that the channels can produce is a witness: the total leakage is at least the
log-ratio of its likelihoods under the two values. The search improves one attribute's report at a time, the
others held, which is the problem of one pair with reweighted records. It looks at a sample of the records;
its last witness is evaluated on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import conditional_rows, direct_leakage
from sidelight.leakage.totals.base import Channels
from sidelight.leakage.totals.exact import OwnReport, Reached, with_neighbour
from sidelight.mechanisms import Channel
from sidelight.sources import Records

_SAMPLE = 1 << 10
_CANDIDATES = 4
_SWEEPS = 3
_LARGEST_PROMISE = 1 << 25


def lower_total(belief: Belief, channels: Channels, secret: str) -> Bound:
    """Return the best witness at hand: the own report with its worst neighbour, or a search over all reports.

    Fewer reports never say more, and any combination of reports is a witness.
    """
    channels = {name: channel.attained for name, channel in channels.items()}
    own = OwnReport.of(belief, channels, secret)
    best = direct_leakage(belief, channels.get(secret), secret).lower
    best = Bound(best.value, "lower", "own report", best.witness, best.support)
    for name, channel in channels.items():
        if name == secret:
            continue
        reached = with_neighbour(belief, channel, name, own)
        if reached.value > best.value:
            method = f"own report with {name}" if secret in channels else f"report of {name}"
            best = reached.witnessed(Bound(reached.value, "lower", method), belief, channels, own)
    searched = _search(belief, channels, own)
    if searched is None or searched.value <= best.value:
        return best
    return searched.witnessed(Bound(searched.value, "lower", "search over reports"), belief, channels, own)


def _search(belief: Belief, channels: Channels, own: OwnReport) -> Reached | None:
    """Return the best witness of a search over all reports.

    None where the belief has no records, nothing else is released, or the search would take long.
    """
    secret, others = own.secret, [name for name in channels if name != own.secret]
    work = len(own.pairs) ** 2 * sum(channels[name].size for name in others)
    if belief.records is None or belief.smoothing or not others or work > _LARGEST_PROMISE:
        return None
    # Each report at its best for a pair of values promises more than all can keep together: where to start.
    promise = own.pairs + sum(
        channels[name].ratio_pairs(conditional_rows(belief, secret, name)[0]) for name in others
    )
    np.fill_diagonal(promise, -np.inf)
    samples: dict[int, _Sample] = {}
    best, witness, pair = -math.inf, list[_Report](), (0, 0)
    for place in np.argsort(-promise, axis=None)[:_CANDIDATES]:
        i, j = divmod(int(place), len(promise))
        if i == j:
            continue
        reports = _start(belief, channels, own, (i, j))
        for value in own.possible[[i, j]].tolist():
            if value not in samples:
                samples[value] = _sample(belief.records, secret, others, value)
        likelier, unlikelier = (samples[value] for value in own.possible[[i, j]].tolist())
        reports, value = _ascend(likelier, unlikelier, [channels[name] for name in others], reports)
        if value + own.pairs[i, j] > best:
            best, witness, pair = value + own.pairs[i, j], reports, (i, j)
    said = dict(zip(others, witness, strict=True))
    value = float(own.pairs[pair]) + _evaluate(belief.records, own, said, pair)
    return Reached(value, pair, {name: report.named for name, report in said.items()})


@dataclass(frozen=True, eq=False)
class _Report:
    """An attribute's report: what names it (see `Witness`), and ln of its likelihood given each value."""

    named: Positions
    logs: Array

    @classmethod
    def of(cls, channel: Channel, named: Positions) -> _Report:
        return cls(named, channel.named_logs(named))


@dataclass(frozen=True)
class _Sample:
    """Some records of one secret value: the others' codes (others, records) and the logs of their weights."""

    codes: Positions
    logs: Array


def _sample(records: Records, secret: str, others: Sequence[str], value: int) -> _Sample:
    """Return an even sample of the records of a secret value."""
    mine = np.flatnonzero(records.codes[:, records.schema.index(secret)] == value)
    mine = mine[:: max(1, len(mine) // _SAMPLE)]
    codes = np.stack([records.codes[mine, records.schema.index(name)] for name in others]).astype(np.intp)
    weights = records.weights[mine]
    return _Sample(codes, np.log(weights / weights.sum()))


def _start(belief: Belief, channels: Channels, own: OwnReport, pair: tuple[int, int]) -> list[_Report]:
    """Return for each other attribute the report that is best on its own."""
    rows = {name: conditional_rows(belief, own.secret, name)[0] for name in channels if name != own.secret}
    worst = {name: channels[name].worst_of_pair(given, pair).report for name, given in rows.items()}
    return [_Report.of(channels[name], report) for name, report in worst.items()]


def _ascend(
    likelier: _Sample, unlikelier: _Sample, channels: Sequence[Channel], start: list[_Report]
) -> tuple[list[_Report], float]:
    """Improve one attribute's report at a time until a sweep improves none; return the sample's ratio too."""
    reports = list(start)
    logs = [_weigh(part, reports) for part in (likelier, unlikelier)]
    for _ in range(_SWEEPS):
        changed = False
        for axis, channel in enumerate(channels):
            codes = likelier.codes[axis], unlikelier.codes[axis]
            parts = zip((likelier, unlikelier), logs, strict=True)
            rest = [_without(part, reports, axis, weights) for part, weights in parts]
            rows = [
                np.bincount(code, weights=np.exp(weights - weights.max()), minlength=channel.size)
                for code, weights in zip(codes, rest, strict=True)
                if len(weights) and weights.max() > -math.inf
            ]
            if len(rows) < 2:
                continue
            shares = np.array(rows) / np.array(rows).sum(axis=1, keepdims=True)
            better = _Report.of(channel, channel.worst_of_pair(shares, (0, 1)).report)
            if not len(better.named) or np.array_equal(better.logs, reports[axis].logs):
                continue
            reports[axis] = better
            logs = [weights + better.logs[code] for code, weights in zip(codes, rest, strict=True)]
            changed = True
        if not changed:
            break
    top, bottom = (_log_sum(weights) for weights in logs)
    return reports, top - bottom if top > -math.inf else 0.0


def _without(sample: _Sample, reports: Sequence[_Report], axis: int, weights: Array) -> Array:
    """Take one attribute's report out of the logs of the records' weights."""
    column = reports[axis].logs
    if np.isneginf(column).any():
        return _weigh(sample, reports, leaving_out=axis)
    return np.asarray(weights - column[sample.codes[axis]])


def _weigh(sample: _Sample, reports: Sequence[_Report], leaving_out: int = -1) -> Array:
    logs = sample.logs
    for axis, (codes, report) in enumerate(zip(sample.codes, reports, strict=True)):
        if axis != leaving_out:
            logs = np.add(logs, report.logs[codes])
    return logs


def _evaluate(records: Records, own: OwnReport, said: dict[str, _Report], pair: tuple[int, int]) -> float:
    """Return the log-ratio of the reports' likelihoods under the two secret values, on all records."""
    values = records.codes[:, records.schema.index(own.secret)]
    sums = []
    for value in own.possible[list(pair)]:
        mine = np.flatnonzero(values == value)
        weights = records.weights[mine]
        logs = np.log(weights)
        for name, report in said.items():
            logs += report.logs.take(records.codes[:, records.schema.index(name)].take(mine))
        sums.append(_log_sum(logs) - math.log(float(weights.sum())))
    return sums[0] - sums[1] if sums[0] > -math.inf else 0.0


def _log_sum(logs: Array) -> float:
    largest = float(logs.max(initial=-math.inf))
    return largest if largest == -math.inf else largest + math.log(float(np.exp(logs - largest).sum()))
