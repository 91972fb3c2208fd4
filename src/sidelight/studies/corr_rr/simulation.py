"""One cell of the study: many trials of every method on the same records, with the real protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count, pairwise
from statistics import NormalDist

import numpy as np

from sidelight.advice.advice import choose_protocol
from sidelight.estimation.best import best_posteriors
from sidelight.estimation.estimators import published
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.unbiased import unbiased
from sidelight.foundation.arrays import AnyCodes, Array, to_simplex
from sidelight.protocols.direct import Sample, Split, product, smp, spl
from sidelight.protocols.fake_data import WHOLE, FakeDataProtocol, rs_fd, rs_rfd
from sidelight.protocols.protocol import Protocol, domain_size
from sidelight.protocols.records import RecordReports
from sidelight.protocols.two_phase import TwoPhase
from sidelight.schema import Schema
from sidelight.studies.corr_rr.records import PEOPLE, Marginals, real, schema_of, star

Rows = dict[str, Array]
Trial = list[Array]
"""An array for each attribute."""
Method = Callable[[list[AnyCodes], int], list[Trial]]
"""Takes the records of several trials and the first one's number; returns what it estimates in each."""

BASELINES = ("spl", "rs+fd", "rs+rfd", "corr-rr", "smp")
"""What the study must not lose to."""
KNOWN = "rs+rfd, prior known"
"""RS+RFD in one phase, whose prior is the truth; the paper's learns its prior in a first phase."""
FURTHER = ("smp + simplex", "product", KNOWN)
OURS = "ours"
LOST = 1.02  # what differs by less than 2 % is no loss
PRIOR_SHARE = 0.1
"""The share of the first phase from which RS+RFD learns its prior."""
_LARGEST_PRODUCT = 4096
_TOGETHER = 160_000
Z_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Setting:
    """Where a cell is: a table, its form, a budget, the share of the first phase."""

    table: str
    attributes: int
    values: int
    correlation: float
    epsilon: float
    share: float = 0.1
    marginals: Marginals = "skewed"  # of a star; a real table has its own

    @property
    def schema(self) -> Schema:
        """The attributes."""
        return schema_of(self.attributes, self.values) if self.table == "star" else real(self.table)[0]

    def records(self, trial: int) -> AnyCodes:
        """Return the records of one trial."""
        if self.table == "star":
            return star(self.attributes, self.values, self.correlation, trial, self.marginals)
        codes = real(self.table)[1]
        if len(codes) <= 2 * PEOPLE:
            return codes
        drawn = np.random.default_rng((20_250_716, trial)).choice(len(codes), PEOPLE, replace=False)
        return codes[drawn]


@dataclass(frozen=True, eq=False)
class Cell:
    """The errors of every method in one setting."""

    setting: Setting  # where it is
    errors: Rows  # by method, (trials,) mean squared errors, paired by trial
    chosen: str  # the protocol that ours chose, in words

    def mean(self, method: str) -> float:
        """Return the mean error of a method."""
        return float(self.errors[method].mean())

    def ratio(self, method: str, of: str = OURS, z: float = Z_95) -> tuple[float, float, float]:
        """Return one mean error, by default ours, over another's, with its 95 % interval."""
        return error_ratio(self.errors[of], self.errors[method], z)

    def lost(self, methods: Sequence[str]) -> list[str]:
        """Return the methods that ours loses to: the whole interval of the ratio lies above 1.02."""
        return [name for name in methods if name in self.errors and self.ratio(name)[1] > LOST]


def error_ratio(first: Array, second: Array, z: float = Z_95) -> tuple[float, float, float]:
    """Return the ratio of two mean errors over the same trials, with its interval (paired, delta method)."""
    ratio = float(first.mean() / second.mean())
    # the trials are paired, so the spread is that of first - ratio x second, not of either mean alone
    spread = float((first - ratio * second).std(ddof=1) / np.sqrt(len(first)) / second.mean())
    return ratio, ratio - z * spread, ratio + z * spread


def simulate(setting: Setting, trials: int) -> Cell:
    """Run all methods on the same records, several trials at a time."""
    schema = setting.schema
    methods = _methods(setting, schema)
    estimates: dict[str, list[Trial]] = {name: [] for name in methods}
    truths: list[Trial] = []
    while len(truths) < trials:
        start = len(truths)
        # small trials share a call, so that they share its fixed cost too
        blocks = [setting.records(start)]
        together = min(max(1, _TOGETHER // len(blocks[0])), trials - start)
        blocks += [setting.records(trial) for trial in range(start + 1, start + together)]
        truths += [_truth(schema, records) for records in blocks]
        for name, method in methods.items():
            estimates[name] += method(blocks, start)
    results = {name: _stacked(rows) for name, rows in estimates.items()}
    results["smp + simplex"] = [to_simplex(column) for column in results["smp"]]
    return Cell(setting, _errors(results, _stacked(truths)), _chosen(setting))


def with_share(cell: Cell, setting: Setting) -> Cell:
    """Return the cell with Corr-RR's error at another share of the first phase; no other method has one."""
    schema = setting.schema
    errors = []
    for trial in range(len(cell.errors[OURS])):
        records = setting.records(trial)
        estimate = two_phases(setting, schema, records, trial)
        errors.append(_errors({"corr-rr": estimate}, _truth(schema, records))["corr-rr"])
    return Cell(setting, {**cell.errors, "corr-rr": np.array(errors)}, cell.chosen)


def _errors(results: dict[str, Trial], truth: Trial) -> Rows:
    """Return the mean squared error of every trial, by method, over attributes and values."""
    return {
        name: np.mean([((a - b) ** 2).mean(axis=-1) for a, b in zip(rows, truth, strict=True)], axis=0)
        for name, rows in results.items()
    }


def _chosen(setting: Setting) -> str:
    """Say which protocol ours chose."""
    own = own_protocol(setting)
    groups = ", ".join(sorted({str(len(group.names)) for group in own.groups}))
    kinds = ", ".join(sorted({group.mechanism for group in own.groups}))
    return f"{own.name}, {len(own.groups)} units of {groups} ({kinds})"


def _stacked(rows: Sequence[Trial]) -> Trial:
    """Return one array (trials, values) for each attribute."""
    return [np.stack([row[i] for row in rows]) for i in range(len(rows[0]))]


def _methods(setting: Setting, schema: Schema) -> dict[str, Method]:
    epsilon = setting.epsilon
    uniform = rs_fd(schema, epsilon)

    def realistic(records: AnyCodes, seed: int) -> Trial:
        """RS+RFD whose prior is the truth."""
        priors = dict(zip(schema.names, _truth(schema, records), strict=True))
        protocol = rs_rfd(schema, epsilon, priors, "the true frequencies")
        return faked(protocol, protocol.randomise(records, seed=seed))

    phases = partial(two_phases, setting, schema)
    learnt = partial(learnt_prior, replace(setting, share=PRIOR_SHARE), schema)
    own = own_protocol(setting)
    methods: dict[str, Method] = {
        OURS: lambda blocks, start: list(map(_best, _reports(own, blocks, start))),
        "spl": _inverted(spl(schema, epsilon)),
        "smp": _inverted(smp(schema, epsilon)),
        "rs+fd": lambda blocks, start: [faked(uniform, part) for part in _reports(uniform, blocks, start)],
        "rs+rfd": lambda blocks, start: list(map(learnt, blocks, count(start))),
        "corr-rr": lambda blocks, start: list(map(phases, blocks, count(start))),
        KNOWN: lambda blocks, start: list(map(realistic, blocks, count(start))),
    }
    if domain_size(schema.sizes) <= _LARGEST_PRODUCT:
        methods["product"] = _inverted(product(schema, epsilon))
    return methods


def _reports(protocol: Protocol, blocks: list[AnyCodes], start: int) -> list[RecordReports]:
    """Return the reports of several trials, made in one go."""
    whole = protocol.randomise(np.concatenate(blocks), seed=start)
    ends = np.cumsum([0, *(len(block) for block in blocks)])
    return [whole[int(low) : int(high)] for low, high in pairwise(ends)]


@cache
def own_protocol(setting: Setting) -> Split | Sample:
    """Return the protocol that ours chooses: from the schema and the budget alone, nothing of the data."""
    return choose_protocol(setting.schema, setting.epsilon)


def _best(reports: RecordReports) -> Trial:
    """Return the posterior means of every attribute, as `estimate` gives them."""
    sums = [reports.aggregate()]
    schema = reports.protocol.schema
    found = best_posteriors(schema, sums, unbiased(sums))
    return [found[name].mean for name in schema.names]


def _inverted(protocol: Split | Sample) -> Method:
    def run(blocks: list[AnyCodes], start: int) -> list[Trial]:
        marginals = [unbiased([part.aggregate()]) for part in _reports(protocol, blocks, start)]
        return [[parts[name].estimate for name in protocol.schema.names] for parts in marginals]

    return run


def faked(protocol: FakeDataProtocol, reports: RecordReports) -> Trial:
    """Return RS+FD's and RS+RFD's own estimator: (d c/n - q - (d-1) r) / (p - q)."""
    size = len(protocol.schema)
    estimates = []
    for name, part in zip(protocol.schema.names, reports.aggregate().parts, strict=True):
        response = protocol.responses[name]
        low = float(response.mark_if_other)
        gap = float(response.mark_if_true) - low
        prior = protocol.law("", name)[0] / WHOLE
        estimates.append((size * part.sums / reports.people - low - (size - 1) * prior) / gap)
    return estimates


@cache
def _design(setting: Setting) -> TwoPhase:
    return TwoPhase(setting.schema, setting.epsilon, share=setting.share)


def _first_phase(setting: Setting, records: AnyCodes, trial: int) -> tuple[RecordReports, AnyCodes]:
    """Return the first phase's reports and the others' records, people assigned anew in every trial."""
    order = np.random.default_rng((20_250_717, trial)).permutation(len(records))
    cut = round(setting.share * len(records))
    return _design(setting).first.randomise(records[order[:cut]], seed=trial), records[order[cut:]]


def two_phases(setting: Setting, schema: Schema, records: AnyCodes, trial: int) -> Trial:
    """Return Corr-RR's estimate."""
    first, others = _first_phase(setting, records, trial)
    parameters = learn_second_phase(_design(setting), first, people=len(others))
    second = parameters.second.randomise(others, seed=trial)
    estimates = published([first.aggregate(), second.aggregate()])
    return [estimates[name] for name in schema.names]


def learnt_prior(setting: Setting, schema: Schema, records: AnyCodes, trial: int) -> Trial:
    """Return RS+RFD's estimate as the paper's public code makes it.

    A first phase of SPL gives the prior; what the second phase says is clipped to 0..1 and brought to the
    sum 1, and both phases are weighted by their people.
    """
    first, others = _first_phase(setting, records, trial)
    before = unbiased([first.aggregate()])
    priors = {name: _clipped(before[name].estimate) for name in schema.names}
    protocol = rs_rfd(schema, setting.epsilon, priors, "the first phase")
    after = faked(protocol, protocol.randomise(others, seed=trial))
    share = first.people / len(records)
    return [
        share * before[name].estimate + (1 - share) * _clipped(second)
        for name, second in zip(schema.names, after, strict=True)
    ]


def _clipped(estimate: Array) -> Array:
    """Return frequencies cut to 0..1 and divided by their sum; even ones where nothing is left."""
    cut = np.clip(estimate, 0.0, 1.0)
    return cut / cut.sum() if cut.any() else np.full(len(cut), 1 / len(cut))


def _truth(schema: Schema, records: AnyCodes) -> Trial:
    return [np.bincount(records[:, i], minlength=size) / len(records) for i, size in enumerate(schema.sizes)]
