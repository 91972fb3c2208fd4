"""Protocols as somebody outside the package would write them, with no more than the guide asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sidelight.foundation.randomness import randomness
from sidelight.mechanisms import ReportForm, Reports
from sidelight.mechanisms.checks import check_offset
from sidelight.protocols import rs_fd, smp
from sidelight.protocols.direct import GroupProtocol
from sidelight.protocols.fake_data import WHOLE, whole_law
from sidelight.protocols.protocol import Protocol, check_budget, check_records, every_record
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema


@dataclass(frozen=True)
class NearRecords(Protocol):
    """Reports a whole record: most likely the true one, then any that differs in one attribute only."""

    kind = "near"
    schema: Schema
    nominal_budget: float

    def __post_init__(self):
        check_budget(self.nominal_budget)

    @property
    def name(self):
        return "near"

    @property
    def proof(self):
        return "the largest ratio of two records' weights for one report, over all reports"

    @property
    def labels(self):
        return self.schema.names

    @property
    def forms(self):
        return tuple(ReportForm.codes(size) for size in self.schema.sizes)

    @property
    def weights(self):
        """Whole numbers that add up to 2^32 for each record; a little budget is kept for their rounding."""
        every = every_record(self.schema)
        differ = (every[:, :, None] != every[:, None, :]).sum(axis=0)
        law = np.exp(-(self.nominal_budget - 1e-6) * np.minimum(differ, 2) / 2)
        return whole_law(law / law.sum(axis=1, keepdims=True))

    @property
    def epsilon(self):
        return float(np.log(self.weights.max(axis=0) / self.weights.min(axis=0)).max())

    def matrix(self):
        return self.weights / WHOLE

    def randomise(self, records, *, seed=None, offset=0):
        sizes = self.schema.sizes
        rows = np.ravel_multi_index(tuple(check_records(records, self.schema).T), sizes)
        drawn = randomness(seed, "near").words(check_offset(offset), len(rows)) >> np.uint64(32)
        ends = np.cumsum(self.weights, axis=1)[rows, :-1]
        codes = np.unravel_index((drawn.astype(np.int64)[:, None] >= ends).sum(axis=1), sizes)
        parts = tuple(
            Reports(column.astype(form.dtype), is_simulation=seed is not None)
            for column, form in zip(codes, self.forms, strict=True)
        )
        return RecordReports(self, parts, (None,) * len(parts), len(rows), seed is not None)

    def to_file(self):
        return {"protocol": self.kind, "epsilon": self.nominal_budget}

    @classmethod
    def from_file(cls, data, schema):
        return cls(schema, data["epsilon"])


@dataclass(frozen=True)
class _Delegating(Protocol):
    """States the abstract members only, each as another protocol has it."""

    schema: Schema
    nominal_budget: float

    @property
    def inner(self):
        return smp(self.schema, self.nominal_budget)

    @property
    def name(self):
        return self.kind

    @property
    def proof(self):
        return self.inner.proof

    @property
    def epsilon(self):
        return self.inner.epsilon

    @property
    def labels(self):
        return tuple(f"part {label}" for label in self.inner.labels)

    @property
    def forms(self):
        return self.inner.forms

    def matrix(self):
        return self.inner.matrix()

    def randomise(self, records, *, seed=None, offset=0):
        return replace(self.inner.randomise(records, seed=seed, offset=offset), protocol=self)

    def to_file(self):
        return {"protocol": self.kind, "epsilon": self.nominal_budget, "release": "none", "second": "none"}

    @classmethod
    def from_file(cls, data, schema):
        return cls(schema, data["epsilon"])


class OnePart(_Delegating):
    """A person sends one of the parts; enumeration does the rest."""

    kind = "one part"
    sends_one_part = True


class OneGroup(_Delegating, GroupProtocol):
    """A person sends the report of one of the groups that it states."""

    kind = "one group"
    sends_one_part = True

    @property
    def groups(self):
        return self.inner.groups


class LinearCounts(_Delegating):
    """Its counts are linear in the frequencies, so that whole reports need not be counted."""

    kind = "linear"
    is_linear = True

    @property
    def inner(self):
        return rs_fd(self.schema, self.nominal_budget)

    def expected_counts(self):
        return self.inner.expected_counts()

    def report_covariance(self, frequencies):
        return self.inner.report_covariance(frequencies)
