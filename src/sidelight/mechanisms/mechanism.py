"""The contract of a mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.bits import code_type as code_type
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.mechanisms.channel import Channel, DenseChannel, FavouringChannel
from sidelight.mechanisms.checks import check_codes as check_codes
from sidelight.mechanisms.checks import check_list as check_list
from sidelight.mechanisms.checks import check_shares, need_budget, refuse_parameters
from sidelight.mechanisms.checks import impossible as impossible
from sidelight.mechanisms.reports import ReportForm, Reports
from sidelight.mechanisms.reports import check_reports as check_reports

if TYPE_CHECKING:
    from sidelight.mechanisms.binned_numbers import BinnedNumbers


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a server keeps of so many reports: sums that can be merged in any order.

    They are the mechanism's sufficient sums, whole numbers, so that merging never rounds. Its name is empty
    where it is not known.
    """

    reports: int
    sums: Whole
    mechanism: str = ""

    def __add__(self, other: Aggregate) -> Aggregate:
        if not isinstance(other, Aggregate):
            return NotImplemented
        names = {self.mechanism, other.mechanism} - {""}
        if self.sums.shape != other.sums.shape or len(names) > 1:
            raise InputError(
                "only aggregates of the same mechanism can be merged, got "
                f"{self.sums.size} sums of {self.mechanism!r} and {other.sums.size} of {other.mechanism!r}."
            )
        merged = self.sums + other.sums
        if np.any(((self.sums ^ merged) & (other.sums ^ merged)) < 0):  # both signs differ from the result's
            raise InputError("the aggregates add up to more than 64 bits hold; estimate from fewer reports.")
        return Aggregate(self.reports + other.reports, merged, "".join(names))


@dataclass(frozen=True)
class Mechanism(ABC):
    """One attribute's randomiser: everything that the rest of the package may ask about it.

    A probability is an integer threshold on 64 random bits. What is stated (`epsilon`, `channel`) is computed
    from the thresholds in use, and the realised budget never exceeds the nominal one. What a mechanism does
    not state is refused, or taken from the safe side; nothing is assumed from its name or its class.

    Abstract: `epsilon`, `channel`, `form`, `randomise`, `aggregate`, `estimate` and `variance`. All else
    follows, and is overridden where a mechanism knows better. A mechanism whose reports mark values needs
    less still: see `oracle.FrequencyOracle`.

    Attributes:
        size: the number of values.
    """

    name: ClassVar[str]
    """Under which plans and files know it."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """What a plan may give besides the budget."""
    has_budget: ClassVar[bool] = True
    """Whether a plan gives a nominal budget; False where everything is told, or nothing."""
    keeps: ClassVar[bool] = False
    """Whether the reports of one value are made from one kept response, unless a plan says otherwise."""
    makes_reports: ClassVar[bool] = True
    """Whether it can be run; False for a mechanism that is still to be chosen."""
    estimates: ClassVar[Literal["frequencies", "mean", "nothing"]] = "frequencies"
    """What `estimate` returns."""
    counted: ClassVar[slice] = slice(None)
    """Which sums of an aggregate are counts of reports, from 0 to their number."""
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """What `examples` returns where it is the same for every size."""
    guess_is_model: ClassVar[bool] = False
    """Whether the stated guess is that of an idealised mechanism that stands for this one."""
    size: int

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism that a plan asks for."""
        refuse_parameters(cls.name, parameters, cls.parameters)
        make_one: Callable[..., Self] = cls
        return make_one(size, need_budget(cls.name, epsilon), **parameters)

    @classmethod
    def examples(cls, size: int) -> Iterable[Mapping[str, Any]]:  # noqa: ARG003 - others depend on it
        """Return parameters under which the contract suite tests the mechanism, the usual ones first."""
        return cls.tried

    @classmethod
    def relative(cls, given: Mapping[str, Any], epsilon: float | None) -> Mapping[str, Any]:  # noqa: ARG003
        """Return parameters that mean the same at every budget as those given do at `epsilon`.

        Those that are budgets themselves become shares of it; those that decide on it are left out.
        """
        return given

    # What it spends and reveals.

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The realised budget of one report."""

    @property
    def epsilon_unlimited(self) -> float:
        """What unlimited reports of one value through one kept response really spend.

        This is what the nominal budget bounds. Where nothing is added to the response, all reports are one.
        """
        return self.epsilon

    @property
    def delta(self) -> float:
        """The realised probability that the budget does not hold: 0 unless the mechanism says otherwise."""
        return 0.0

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The law of a report."""

    def together(self, times: int, *, kept: bool | None = None) -> tuple[Mechanism, int]:
        """Return how a person's `times` reports of one value are sent: a mechanism, and how often.

        The reports of that mechanism, so many and independent, are all that is sent. With fresh noise it is
        this one, `times` times. Where the response is kept and nothing is added to it, it is this one, once:
        the same report again says no more. A longitudinal oracle returns the mechanism of all its reports.

        Args:
            times: how many reports.
            kept: whether the device keeps its response; by default as the mechanism does itself (`keeps`).
        """
        count = check_whole("times", times, at_least=1)
        return self, 1 if (self.keeps if kept is None else kept) else count

    def repeated(self, times: int, *, kept: bool | None = None) -> Channel:
        """Return the channel of `times` reports of the same value, see `together`."""
        mechanism, count = self.together(times, kept=kept)
        return mechanism.channel.repeated(count)

    @property
    def degrades(self) -> bool:
        """Whether a smaller nominal budget only adds noise, `at(smaller)` being a degraded `self`.

        Then its reports are a post-processing of those of the larger budget, and nothing leaks less when a
        budget is raised. False where this is not known.
        """
        return False

    def at(self, nominal_budget: float) -> Self:
        """Return the mechanism at another nominal budget, with every parameter in use held."""
        changed: dict[str, Any] = {"nominal_budget": nominal_budget}
        return replace(self, **changed)

    @property
    def held(self) -> Mapping[str, Any]:
        """The parameters to hold while budgets are searched, so that leakage grows with the budget."""
        return {}

    # What goes in and what comes out.

    @property
    def takes(self) -> Literal["codes", "numbers"]:
        """What `randomise` is given for each person."""
        return "codes"

    def inputs(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return what `randomise` takes for people with these codes: the codes, or a number for each."""
        return codes

    def over_codes(self) -> Mechanism:
        """Return the mechanism that randomises codes and estimates their frequencies in the same way."""
        return self

    @property
    @abstractmethod
    def form(self) -> ReportForm:
        """What every report looks like."""

    def check(self, reports: Reports) -> NDArray[Any]:
        """Return the reports' values, or raise if this mechanism cannot have made some of them."""
        return self.form.check(reports)

    @abstractmethod
    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one report for each value; secure without a seed, a simulation with one.

        Args:
            values: what the mechanism `takes`: codes in 0..size-1, or numbers.
            seed: for simulation; without one the noise is secure.
            offset: the first value's position in the whole table, so that chunks of it agree.
        """

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return the report that a device makes of one code from a stream of random bytes.

        Its law is that of `randomise`, exactly; the bytes that it takes and what it makes of them are fixed
        for ever, see `docs/wire.md`. Refused where no such rules are laid down.
        """
        del code, draws
        raise InputError(
            f"no rules are laid down for how a device makes a report of {self.name!r} from given bytes; take "
            "'grr', 'sue', 'oue', 'blh', 'olh', 'ss', 'hadamard' or 'dbitflip', or `randomise`."
        )

    # What the server makes of it.

    @abstractmethod
    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up, after `check`."""

    @abstractmethod
    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the values' frequencies, or of the mean of numbers, shape (1,)."""

    @abstractmethod
    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction] | None:
        """How likely a report marks the true value, and another one; None where reports mark no values."""
        return None

    @property
    def set_size(self) -> int | None:
        """How many values every report marks, any so many being marked alike; None if that is not so."""
        return None

    @property
    def adds_up(self) -> bool:
        """Whether unbiased estimates of all values add up to 1; if not, their errors are uncorrelated.

        Marks do if every report has as many, and an inverted channel keeps the sum of what it is given.
        """
        return self.mark_rates is None or self.set_size is not None

    @property
    def loss_rates(self) -> tuple[float, float] | None:
        """How often ln Pr(report | value) / Pr(report | other) is +epsilon, and -epsilon; else it is 0.

        The report is that of the value; the rates are the same for all two values. None if that is not so.
        """
        if self.set_size is None or self.mark_rates is None or self.size < 2:
            return None
        # Given that one of two values is marked or not, the other one is as likely marked as any.
        marked, others = float(self.mark_rates[0]), self.size - 1
        return marked * (self.size - self.set_size) / others, (1 - marked) * self.set_size / others

    def report_law(self, most: int) -> Array | None:
        """Return Pr(report | value) of every report, shape (size, reports).

        None if there are more than `most` reports, or they cannot be listed.
        """
        channel = self.channel
        if not channel.is_listable or channel.count_reports() > most:
            return None
        return channel.report_rows(np.eye(self.size))

    @property
    def numbers(self) -> BinnedNumbers | None:
        """The mechanism itself where codes stand for numbers and a mean can be estimated too, else None."""
        return None

    # What an adversary makes of it.

    def likelihoods(self, reports: Reports) -> Array:
        """Return Pr(report | value), up to a factor for each report, shape (reports, size).

        The array is laid out value by value: sums and products over values read whole columns.
        """
        self._check_listed()
        codes, rows = np.unique(self.check(reports), return_inverse=True)
        channel = self.channel
        # Over its largest, so that a product over many reports stays within the range of doubles.
        each = [(likely := channel.likelihood(int(code))) / likely.max() for code in codes]
        return np.take(np.array(each).reshape(len(codes), self.size).T, rows, axis=1).T

    def log_scales(self, reports: Reports) -> Array | None:
        """Return ln of the factors that `likelihoods` leaves out, shape (reports,); None if not stated.

        They are given up to a number for each report that is the same at every budget.
        """
        del reports
        return None

    def tabulated(self, reports: Reports) -> tuple[Array, Positions]:
        """Return the distinct reports' likelihoods, shape (distinct, size), and which one each report is."""
        self._check_listed()
        return self.channel.matrix().T, self.check(reports).astype(np.intp)

    def _check_listed(self) -> None:
        if not self.form.is_listed:
            raise InputError(
                f"the reports of {self.name!r} have no likelihood that is written out; estimate by inversion."
            )

    @property
    def guess_rate(self) -> float | None:
        """How often the guess from a report is right, the same for all values; None if not known alike."""
        said = self._said
        return None if said is None else 1 / (1 + (self.size - 1) * said.baseline)

    @property
    def _said(self) -> FavouringChannel | None:
        """The channel where a report is a value, and so its own guess; None elsewhere."""
        channel = self.channel
        if isinstance(channel, FavouringChannel) and channel.family == "singletons":
            return channel
        return None

    def guess_channel(self) -> Channel:
        """Return the channel to the value guessed by an adversary who throws the report away (CPL, App. B).

        Of a single value that is kept; of a set of bits one of those that are set, or any value where none
        is; of a hashed bucket one of the values in it, or any value where it is empty; of a subset one of its
        values; of a noisy histogram the largest entry; of any other report a value under which it is
        likeliest. The first five treat the other values alike, so that `guess_rate` says everything.
        Published comparisons look at this channel; a real adversary keeps the whole report, which says more.
        """
        if (rate := self.guess_rate) is not None:
            other = (1 - rate) / max(self.size - 1, 1) / rate
            # No guess is worse than a blind one; where it is hardly better, rounding must not say that it is.
            even = FavouringChannel(self.size, "singletons", min(other, 1.0), is_model=self.guess_is_model)
            return self._said or even  # a report that is a value says so to the last bit of its law
        cells, guess = self._likeliest()
        return DenseChannel(cells @ guess.T)

    def guess_accuracy(self, frequencies: ArrayLike | None = None) -> float:
        """Return the probability that this guess is right, the values being so frequent; alike by default."""
        even = np.full(self.size, 1 / self.size)
        share = even if frequencies is None else check_shares(frequencies, self.size)
        if (rate := self.guess_rate) is not None:
            return rate
        cells, guess = self._likeliest()
        return float(share @ (cells * guess).sum(axis=1))  # without the channel of the guess, size x size

    def _likeliest(self) -> tuple[Array, Array]:
        """Return the channel's matrix, and how likely each value is guessed from each report, evenly."""
        if not self.form.is_listed:
            raise InputError(
                f"no guess is defined for the mechanism {self.name!r}; look at its whole report instead."
            )
        try:
            cells = self.channel.matrix()
        except TooLargeError:
            raise TooLargeError(
                f"the guess from {self.name!r} needs its matrix, not built for {self.size} values; no guess "
                "is defined. Group the values, or look at the whole report instead."
            ) from None
        is_best = cells >= cells.max(axis=0) * (1 - 1e-12)  # equally likely values may round differently
        return cells, is_best / is_best.sum(axis=0)

    def face_value(self, reports: Reports) -> Positions | None:
        """Return each report read as if it were the true code; None where it is no single value."""
        del reports
        return None


def check_estimable(aggregate: Aggregate, sums: int, name: str) -> None:
    """Raise if there is nothing to estimate from, or the sums are another mechanism's."""
    if not isinstance(aggregate, Aggregate):
        raise invalid("aggregate", "what `aggregate` returned", type(aggregate).__name__)
    if aggregate.mechanism not in ("", name):
        raise InputError(f"the aggregate is of {aggregate.mechanism!r}, this mechanism is {name!r}.")
    if aggregate.sums.shape != (sums,):
        raise InputError(f"the aggregate has {aggregate.sums.size} sums, this mechanism needs {sums}.")
    if aggregate.reports < 1:
        raise InputError("there are no reports to estimate from.")
