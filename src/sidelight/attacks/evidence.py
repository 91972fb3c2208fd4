"""Evidence: what reports say about whole records, for every protocol of a collection.

A report is a few independent parts. What a part says is a function of the record: of one attribute, of a
group of attributes that was reported as one value, or, where a protocol hides which attribute it reported, a
sum over those it may have been. Each such function is a *factor*: it can be read off at given records, and it
is a sum of products of functions of single attributes, which is what message passing in a tree wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.released import Released
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Mechanism, Reports
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.mechanism import check_codes
from sidelight.protocols import FakeDataProtocol, RecordReports, Sample, Split
from sidelight.protocols.groups import ReportedGroup
from sidelight.schema import Schema

Array = NDArray[np.float64]
Columns = Mapping[str, NDArray[np.intp]]
"""The codes of some records, by attribute."""
Spoken = Mapping[str, Array]
"""What is said about single attributes: up to a factor for each row, shape (values, rows)."""
Term = tuple[float, Spoken]
"""A weight and a product over attributes."""


class Factor(Protocol):
    """What one part of a report says, for several people at once (rows)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it is about."""

    def likely(self, columns: Columns) -> Array:
        """Return the likelihood of each row's report under each record, shape (records, rows)."""

    def terms(self) -> list[Term]:
        """Return the same as a sum of products."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A report of one attribute; of several where it is hidden which one it is, then their sum."""

    parts: Spoken

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it may be about."""
        return tuple(self.parts)

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        return np.asarray(sum(part[columns[name]] for name, part in self.parts.items()))

    def terms(self) -> list[Term]:
        """Return one term for each attribute that it may be."""
        return [(1.0, {name: part}) for name, part in self.parts.items()]


@dataclass(frozen=True, eq=False)
class Cells:
    """A report of a group as one value: it favours some cells of the product domain.

    Attributes:
        names: the group.
        sizes: their numbers of values.
        favoured: (width, rows) the cells that each report favours.
        baseline: the likelihood of any other cell over that of a favoured one.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    favoured: NDArray[np.intp]
    baseline: float

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        table = np.full((int(np.prod(self.sizes)), self.favoured.shape[1]), self.baseline)
        np.put_along_axis(table, self.favoured, 1.0, axis=0)
        return table[np.ravel_multi_index(tuple(columns[name] for name in self.names), self.sizes)]

    def terms(self) -> list[Term]:
        """Return the baseline, and what each favoured cell has above it: one value of every attribute."""
        found: list[Term] = [(self.baseline, {})]
        for cells in self.favoured:
            codes = np.unravel_index(cells, self.sizes)
            each = zip(self.names, self.sizes, codes, strict=True)
            said = {name: (np.arange(size)[:, None] == code).astype(float) for name, size, code in each}
            found.append((1 - self.baseline, said))
        return found


Batch = tuple[slice | NDArray[np.intp], list[Factor]]
"""Some people's rows and what their reports say."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an attacker reads.

    Attributes:
        schema: the attributes that the reports are about.
        people: how many people reported.
        cells: the largest number of values that a part of a report is about.
        batches: from the largest number of rows to what people say, each person once.
    """

    schema: Schema
    people: int
    cells: int
    batches: Callable[[int], Iterator[Batch]]


def evidence_of(reports: Released | RecordReports) -> Evidence:
    """Return what reports of any protocol say."""
    if isinstance(reports, Released):
        return _released(reports)
    protocol = getattr(reports, "protocol", None)
    if isinstance(protocol, (Split, Sample)):
        return _units(reports, protocol)
    if isinstance(protocol, FakeDataProtocol):
        return _hidden(reports, protocol)
    named = getattr(protocol, "name", type(reports).__name__)
    raise InputError(
        "the Bayes attack reads what `collect` returns for a plan, SPL, SMP, product, RS+FD, RS+RFD, Corr-RR "
        f"or Cond-RR; got {named}."
    )


def _runs(count: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _released(released: Released) -> Evidence:
    """Who did not report an attribute says nothing of it."""
    mechanisms = {part.name: part.randomiser() for part in released.plan.releases}
    telling = {name: mechanism for name, mechanism in mechanisms.items() if mechanism.epsilon}

    def batches(step: int) -> Iterator[Batch]:
        for span in _runs(len(released), step):
            yield (
                span,
                [Choice({name: _said(released, name, each, span)}) for name, each in telling.items()],
            )

    schema = released.plan.schema
    return Evidence(schema, len(released), max(schema.sizes), batches)


def _said(released: Released, name: str, mechanism: Mechanism, span: slice) -> Array:
    reports, rows = released.part(name, span.start, span.stop)
    likely = mechanism.likelihoods(reports).T
    if rows is None:
        return likely
    everyone = np.ones((len(likely), span.stop - span.start))
    everyone[:, rows] = likely
    return everyone


def _units(collected: RecordReports, protocol: Split | Sample) -> Evidence:
    """Everyone reports every unit, or each person one of them."""
    factors = [_unit_factor(unit) for unit in protocol.units]
    parts = list(zip(factors, collected.parts, collected.senders, strict=True))

    def split(step: int) -> Iterator[Batch]:
        for span in _runs(collected.people, step):
            yield span, [factor(reports[span]) for factor, reports, _ in parts]

    def sample(step: int) -> Iterator[Batch]:
        for factor, reports, senders in parts:
            rows = np.arange(collected.people) if senders is None else senders
            for span in _runs(len(rows), step):
                yield rows[span], [factor(reports[span])]

    cells = max(unit.size for unit in protocol.units)
    chosen = split if isinstance(protocol, Split) else sample
    return Evidence(protocol.schema, collected.people, cells, chosen)


def _unit_factor(unit: ReportedGroup) -> Callable[[Reports], Factor]:
    mechanism = unit.randomiser
    if len(unit.names) == 1:
        return lambda reports: Choice({unit.label: mechanism.likelihoods(reports).T})
    channel = mechanism.channel
    if not isinstance(channel, FavouringChannel):
        raise InputError(f"the group {unit.label!r} is reported through {unit.mechanism!r}; take grr or ss.")

    def factor(reports: Reports) -> Factor:
        cells = check_codes(reports.values.reshape(-1), unit.size, f"reports of {unit.label}")
        favoured = cells.astype(np.intp).reshape(len(reports), -1).T
        return Cells(unit.names, unit.sizes, favoured, channel.baseline)

    return factor


def _hidden(collected: RecordReports, protocol: FakeDataProtocol) -> Evidence:
    columns = {
        name: check_codes(part.values, protocol.schema[name].size, f"reports of {name}").astype(np.intp)
        for name, part in zip(protocol.labels, collected.parts, strict=True)
    }

    def batches(step: int) -> Iterator[Batch]:
        for span in _runs(collected.people, step):
            said = {name: codes[span] for name, codes in columns.items()}
            yield span, [_hidden_factor(protocol, group, said) for group in protocol.groups]

    return Evidence(protocol.schema, collected.people, max(protocol.schema.sizes), batches)


def _hidden_factor(protocol: FakeDataProtocol, group: tuple[str, ...], said: Columns) -> Choice:
    """Each attribute may be the one that was reported: if so, the others are fakes that follow from it."""
    logs: dict[str, Array] = {}
    with np.errstate(divide="ignore"):
        for chosen in group:
            fakes = [protocol.transfer(chosen, other)[said[chosen], said[other]] for other in group]
            logs[chosen] = np.log(fakes).sum(axis=0)
    most = np.max(list(logs.values()), axis=0)
    shift = np.where(np.isfinite(most), most, 0.0)
    return Choice(
        {name: protocol.response(name)[:, said[name]] * np.exp(logs[name] - shift) for name in group}
    )
