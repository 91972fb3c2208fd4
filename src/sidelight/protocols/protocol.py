"""The contract of a protocol: how whole records become reports, and what those reports say.

Everything that another room may ask of a protocol is a member of `Protocol`. Files, sums, estimates and
attacks need no more than the abstract members: what else they use has a default here that is worked out from
`forms` and `matrix`, by enumerating every record and report. A protocol over many attributes states more, so
that nothing grows with the number of records: `groups` (see `direct.GroupProtocol`), or that it `is_linear`.
`record_budget` is what a whole record's report really spends, by enumeration, and between which records.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Positions
from sidelight.foundation.bits import code_counts
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import (
    InputError,
    TooLargeError,
    check_choice,
    check_is,
    check_number,
    invalid,
)
from sidelight.mechanisms import Aggregate, Mechanism
from sidelight.mechanisms.channel.dense import largest_ratio
from sidelight.mechanisms.checks import impossible
from sidelight.mechanisms.reports import ReportForm
from sidelight.plan import LARGEST_EPSILON
from sidelight.protocols.factors import Factor, Whole
from sidelight.protocols.records import RecordReports, RecordSums, check_people, check_same
from sidelight.schema import Schema

if TYPE_CHECKING:
    from sidelight.protocols.groups import ReportedGroup
    from sidelight.protocols.two_phase import TwoPhase

Rows = slice | Positions
Neighbours = Literal["any two records", "records that differ in one attribute"]
NEIGHBOURS = ("any two records", "records that differ in one attribute")

LARGEST_CHANNEL = 1 << 22
"""A protocol's law is written out only up to this many cells."""


class Design(ABC):
    """How a collection is run: by one protocol, or in two phases, the second learnt from the first."""

    schema: Schema

    @property
    @abstractmethod
    def first(self) -> Protocol:
        """The protocol that the collection begins with; the only one where there is one phase."""

    @property
    def two_phase(self) -> TwoPhase | None:
        """The design itself if it has two phases, else None."""
        return None


class Protocol(Design):
    """A randomiser of whole records: frozen data, written to a file, the same on both sides.

    Attributes:
        kind: what its files state under `protocol`, see `register`.
        schema: the attributes of a record, in order.
        groups: of a `GroupProtocol`, what each part of a report is about: a group of attributes, reported
            through a mechanism of its own; empty for all others.
        sends_one_part: whether a person sends one of the parts, known which, instead of all.
        is_linear: whether the expected counts of the parts' codes are linear in the attributes' frequencies,
            as `expected_counts` and `report_covariance` say; then each part is counted by itself.
    """

    kind: ClassVar[str]
    sends_one_part: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    groups: tuple[ReportedGroup, ...] = ()

    @property
    def first(self) -> Protocol:
        """The protocol itself: there is one phase."""
        return self

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it: "spl", "smp", "rs+fd" and so on."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The realised budget of a whole record: no two records are told apart by more."""

    @property
    def delta(self) -> float:
        """The probability that the budget does not hold, at most; 0 where it always does."""
        return 0.0

    @property
    @abstractmethod
    def proof(self) -> str:
        """The argument for the budget, in one sentence."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The names of the report's parts, one column each."""

    @property
    @abstractmethod
    def forms(self) -> tuple[ReportForm, ...]:
        """What each part looks like: `ReportForm.codes(count)` for a code below `count`, for example."""

    @property
    def part_shares(self) -> tuple[int, ...]:
        """How likely a person sends each part, in whole numbers; 1 each where everyone sends all of them."""
        return (1,) * len(self.labels)

    @property
    def responses(self) -> Mapping[str, Mechanism]:
        """By label, the mechanism whose report a part is, unless it is a fake; empty where there is none."""
        return {group.label: group.randomiser for group in self.groups}

    @property
    def first_phase(self) -> str | None:
        """The fingerprint of the first phase that it was learnt from; None where it stands alone."""
        return None

    @abstractmethod
    def randomise(self, records: AnyCodes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, shape (n, attributes).

        Args:
            records: codes in the schema's order.
            seed: for simulation; without one the noise is secure.
            offset: the first record's position in the whole table, so that chunks of it agree.
        """

    def drawn(self, record: AnyCodes, draws: Draws) -> RecordReports:
        """Return the report that a device makes of one record, shape (attributes,), from random bytes.

        Its law is that of `randomise`, exactly; see `Mechanism.drawn`. Refused where no rules are laid down.
        """
        del record, draws
        raise InputError(
            f"no rules are laid down for how a device makes a report of {self.name!r} from given bytes; use "
            "`randomise`."
        )

    @abstractmethod
    def matrix(self) -> Array:
        """Return Pr(report | record), shape (records, reports); refused above 2^22 cells.

        Records are in C order of the schema, reports in C order of the parts' codes; where a person sends one
        part, the reports of the parts stand side by side.
        """

    @abstractmethod
    def to_file(self) -> dict[str, Any]:
        """Return the protocol without its schema as plain data, its `kind` under "protocol".

        The keys "version" and "attribute" are the file's own.
        """

    @classmethod
    @abstractmethod
    def from_file(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        """Return the protocol that `to_file` described, over a schema."""

    def nobody(self) -> RecordReports:
        """Return the reports of nobody, which have the form of any others."""
        none = np.arange(0) if self.sends_one_part else None
        parts = tuple(form.empty() for form in self.forms)
        return RecordReports(self, parts, (none,) * len(parts), 0)

    def aggregate(self, collected: RecordReports) -> RecordSums:
        """Add reports up; by default, count how often each report was sent, or each part's codes."""
        check_same(self, collected.protocol)
        check_people(collected)
        if self.is_linear:
            parts = zip(self.checked_parts(collected).values(), self.forms, strict=True)
            sums = tuple(Aggregate(len(codes), code_counts(codes, form.count)) for codes, form in parts)
        else:
            if (strange := self.strange(collected)).any():
                raise impossible("what some record can lead to", strange)
            counts = np.bincount(self.columns_of(collected), minlength=len(self._is_possible))
            sums = (Aggregate(collected.people, counts.astype(np.int64)),)
        return RecordSums(self, collected.people, sums, collected.is_simulation)

    def strange(self, collected: RecordReports) -> Mask:
        """Return whose reports no record can lead to, though every part has its form, shape (people,)."""
        if self.is_linear:  # it says nothing about whole reports
            return np.zeros(collected.people, dtype=np.bool_)
        return np.asarray(~self._is_possible[self.columns_of(collected)])

    @cached_property
    def written_law(self) -> Array:
        """The `matrix`, worked out once for all batches of reports, and not begun where it is too large."""
        self._check_writable()
        return self.matrix()

    def _check_writable(self) -> None:
        # Of a part that is no single code the number of reports is not known here, so `matrix` must refuse.
        counts = [form.count if form.is_listed else 1 for form in self.forms]
        columns = sum(counts) if self.sends_one_part else math.prod(counts)
        check_channel_size(domain_size(self.schema.sizes), columns)

    @cached_property
    def _is_possible(self) -> Mask:
        return np.asarray(self.written_law.max(axis=0) > 0)

    def checked_parts(self, collected: RecordReports) -> dict[str, NDArray[Any]]:
        """Return the values of each part, by its label, after checking that they have its form."""
        values = {}
        for label, form, part in zip(self.labels, self.forms, collected.parts, strict=True):
            try:
                values[label] = form.check(part)
            except InputError as error:
                raise InputError(f"the column {label!r}: {error}") from None
        return values

    def columns_of(self, collected: RecordReports) -> Positions:
        """Return the column of `matrix` that each person's report is."""
        if not all(form.is_listed for form in self.forms):
            raise InputError(f"the reports of {self.name!r} are no single codes, too many to enumerate.")
        self._check_writable()
        codes = [values.astype(np.intp) for values in self.checked_parts(collected).values()]
        counts = [form.count for form in self.forms]
        if not self.sends_one_part:
            return np.asarray(np.ravel_multi_index(tuple(codes), counts), dtype=np.intp)
        columns = np.full(collected.people, -1)
        starts = np.cumsum([0, *counts[:-1]])
        for start, part, senders in zip(starts, codes, collected.senders, strict=True):
            columns[senders] = start + part
        if sum(map(len, codes)) != collected.people or np.any(columns < 0):
            raise InputError(f"everyone must report exactly one of {', '.join(self.labels)}.")
        return columns

    def expected_counts(self) -> Array:
        """Return the matrix that turns all frequencies, stacked, into the expected shares of all columns.

        Asked only where the protocol `is_linear`: the matrix must hold whatever the attributes' joint is.
        """
        raise self._unstated("expected_counts")

    def report_covariance(self, frequencies: Array) -> Array:  # noqa: ARG002
        """Return the covariance of one report's indicators, were these the stacked frequencies.

        Asked only where the protocol `is_linear`.
        """
        raise self._unstated("report_covariance")

    def _unstated(self, member: str) -> InputError:
        return InputError(
            f"the protocol {self.name!r} says that it `is_linear` but does not define `{member}`; define it "
            f"in {type(self).__name__}, or leave `is_linear` out, so that whole reports are enumerated."
        )

    @property
    def determines_joint(self) -> bool:
        """Whether reports tell the joint of all attributes, not only their frequencies one by one."""
        return bool(np.linalg.matrix_rank(self.written_law) == len(self.written_law))

    @property
    def widest_factor(self) -> int:
        """The largest number of cells that a factor of the evidence is about."""
        return domain_size(self.schema.sizes)

    def factors(self, collected: RecordReports) -> list[Factor]:
        """Return what each person's report says about the record, as factors whose product is its likelihood.

        A factor may leave out a scale of its own for each person.
        """
        table = self.written_law[:, self.columns_of(collected)]
        return [Whole(self.schema.names, self.schema.sizes, table)]

    def evidence(self, collected: RecordReports, step: int) -> Iterator[tuple[Rows, list[Factor]]]:
        """Return what people's reports say, up to `step` of them at a time, each person once."""
        for start in range(0, collected.people, step):
            span = slice(start, min(start + step, collected.people))
            yield span, self.factors(collected[span])

    def face_value(self, collected: RecordReports, secret: str) -> Positions | None:  # noqa: ARG002
        """Return everyone's report of the secret, taken for its value; None where no part is known as one."""
        return None


def check_budget(epsilon: object) -> float:
    """Return the nominal budget of a record or of a part of it, within what a plan may spend as well."""
    return check_number("epsilon", epsilon, above=0, below=LARGEST_EPSILON)


def even_part(epsilon: float, parts: int) -> float:
    """Return the largest double that, added up `parts` times, does not exceed the budget, exactly."""
    part = epsilon / parts
    return part if Fraction(part) * parts <= Fraction(epsilon) else math.nextafter(part, 0.0)


def check_records(records: Any, schema: Schema) -> AnyCodes:
    """Return records after checking that they are codes of the schema's attributes."""
    array = np.asarray(records)
    if array.ndim != 2 or array.shape[1] != len(schema) or array.dtype.kind not in "ui":
        shape = f"{array.dtype} of shape {array.shape}"
        raise invalid("records", f"integer codes of shape (people, {len(schema)})", shape)
    signed = array.dtype.kind == "i"
    if array.size and int(array.max()) < min(schema.sizes) and not (signed and int(array.min()) < 0):
        return array
    for column, attribute in zip(array.T, schema, strict=True):
        if len(column) and (int(column.max()) >= attribute.size or (signed and int(column.min()) < 0)):
            raise InputError(
                f"`records` of {attribute.name!r} must be codes from 0 to {attribute.size - 1}, got "
                f"{int(column.min())} to {int(column.max())}."
            )
    return array


def check_channel_size(rows: int, columns: int) -> None:
    """Refuse to write out a law that is too large."""
    if rows * columns > LARGEST_CHANNEL:
        raise TooLargeError(
            f"the protocol's law would have {rows} x {columns} cells, more than {LARGEST_CHANNEL}; take "
            "fewer attributes or values. Without it there are the stated `epsilon` and, of a protocol that "
            "states `groups` or `is_linear`, the estimates."
        )


def every_record(schema: Schema) -> Positions:
    """Return every record of a schema's domain in C order, shape (attributes, records)."""
    check_channel_size(domain_size(schema.sizes), 1)
    return np.indices(schema.sizes).reshape(len(schema), -1)


def domain_size(sizes: Sequence[int]) -> int:
    """Return the number of combinations of values."""
    return math.prod(sizes)


@dataclass(frozen=True)
class RecordBudget:
    """The exact budget of a report between neighbouring records: the largest log-ratio of its probabilities.

    `nominal` is what the protocol states for any two records, `method` how the budget was found.
    """

    epsilon: float
    neighbours: Neighbours
    nominal: float
    method: str = "enumeration of every record and report"


def record_budget(protocol: Protocol, neighbours: Neighbours = "any two records") -> RecordBudget:
    """Return the exact budget of a report, by enumerating the protocol's law.

    "Amplification by sampling" is what is left for records that differ in one attribute only, when the
    choice is hidden. It is never assumed: the published ln(d (e^eps - 1) + 1) fails for most protocols.
    """
    fix = "advise(...).choice is one, and so are the reports' collected.protocol."
    check_is("protocol", protocol, Protocol, fix)
    check_choice("neighbours", neighbours, NEIGHBOURS)
    law = protocol.written_law
    if neighbours == "any two records":
        return RecordBudget(largest_ratio(law), neighbours, protocol.epsilon)
    shaped = law.reshape(*protocol.schema.sizes, -1)
    moved = (np.moveaxis(shaped, axis, 0) for axis in range(len(protocol.schema)))
    worst = max(largest_ratio(rows.reshape(len(rows), -1)) for rows in moved)
    return RecordBudget(worst, neighbours, protocol.epsilon)
