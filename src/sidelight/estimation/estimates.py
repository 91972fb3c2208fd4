"""`estimate`: from reports to a table of frequencies with errors and intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from sidelight.estimation.estimators import (
    ESTIMATORS as ESTIMATORS,
)
from sidelight.estimation.estimators import (
    Estimator as Estimator,
)
from sidelight.estimation.estimators import (
    check_published,
    chosen_by,
    expected_errors,
)
from sidelight.estimation.guessing import Guessing, beside_guess
from sidelight.estimation.outlook import known_frequencies
from sidelight.estimation.simulated import Frequencies
from sidelight.estimation.unbiased import ABOUT, About, Mean, Unbiased, means, unbiased
from sidelight.estimation.usefulness import WITHIN
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.foundation.files import SAY_OVERWRITE, check_overwrite, json_number, write_text
from sidelight.foundation.html import html_table
from sidelight.protocols import records
from sidelight.protocols.records import RecordSums, Reported
from sidelight.schema import Schema
from sidelight.sources.table import write_rows


@dataclass(frozen=True)
class Estimate:
    """The frequency of one value, by its attribute and its label, as the chosen estimator has it.

    The standard error is of the unbiased estimate that the interval, within 0 to 1, is made from.
    """

    attribute: str
    value: str
    frequency: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Estimates:
    """The frequencies of every attribute, (values,), the standard errors of unbiased ones, and intervals.

    The interval is that of the unbiased estimate, so that it covers the truth at its rate, the confidence,
    whatever estimator is chosen; it is widened to hold the stated frequency where need be.

    Attributes:
        about: whether the errors are about those who reported or about their population.
        epsilon: what a whole record's report realises at most.
        is_simulation: whether the noise came from a seed.
        unbiased_error: the mean squared error to expect of the unbiased estimates.
        predict: returns by attribute the mean squared error to expect of the chosen estimator; that of the
            unbiased estimates where it is not predicted ("em", "published").
        delta: the probability that the budget does not hold, at most.
        means: by attribute that is reported as a number, the mean of its points.
        unbiased: the unbiased estimates, which the errors of guesses are judged by.
        prior: public frequencies that could be guessed instead.
        within: the precision that people are counted for; 0.01 where none is given.
    """

    schema: Schema
    frequencies: Mapping[str, Array]
    standard_errors: Mapping[str, Array]
    lower: Mapping[str, Array]
    upper: Mapping[str, Array]
    protocol: str
    estimator: str
    about: About
    confidence: float
    people: int
    epsilon: float
    is_simulation: bool
    unbiased_error: float
    predict: Callable[[], Mapping[str, float]]
    delta: float = 0.0
    means: Mapping[str, Mean] = field(default_factory=dict)
    unbiased: Mapping[str, Array] = field(default_factory=dict)
    prior: Frequencies | None = None
    within: float | None = None

    def __getitem__(self, name: str) -> Array:
        _ = self.schema[name]
        return self.frequencies[name]

    def __iter__(self) -> Iterator[Estimate]:
        for attribute in self.schema:
            name = attribute.name
            columns = (self.frequencies, self.standard_errors, self.lower, self.upper)
            for code, value in enumerate(attribute.values):
                yield Estimate(name, value, *(float(column[name][code]) for column in columns))

    @cached_property
    def errors(self) -> Mapping[str, float]:
        """The mean squared error to expect of the chosen estimator, by attribute.

        It is found once it is asked for: where it is simulated, that takes longer than to estimate.
        """
        return self.predict()

    @property
    def expected_error(self) -> float:
        """The mean squared error to expect of the chosen estimator."""
        return float(np.mean(list(self.errors.values())))

    @cached_property
    def guessing(self) -> Guessing:
        """Whether the estimates beat guessing, and how many people a precision would need."""
        variances = {name: error**2 for name, error in self.standard_errors.items()}
        public = None if self.prior is None else known_frequencies(self.schema, self.prior)
        guesses = {"calling all values equally common": {}, "the public prior": public}
        options = [
            (words, *beside_guess(self.unbiased, variances, self.errors, guess))
            for words, guess in guesses.items()
            if guess is not None
        ]
        words, each, together = min(options, key=lambda option: option[2].guess_error)
        within = WITHIN if self.within is None else check_number("within", self.within, above=0, below=1)
        # The noise is in proportion to 1/n; "best" errs less, but ever less so as people are added.
        needed = self.people * max(float(spread.mean()) for spread in variances.values()) / within**2
        return Guessing(words, each, together, self.people, within, max(math.ceil(needed), 1))

    def against(self, truth: Mapping[str, Array]) -> Comparison:
        """Return the estimates beside the true frequencies."""
        for name, size in zip(self.schema.names, self.schema.sizes, strict=True):
            given = np.asarray(truth.get(name, ()))
            if given.shape != (size,):
                raise InputError(f"the truth of {name!r} must be {size} frequencies, got {given.size}.")
        return Comparison(self, {name: np.asarray(truth[name]) for name in self.schema.names})

    def to_arrow(self) -> pa.Table:
        """Return the table: attribute, value, frequency, standard_error, lower, upper."""
        return pa.Table.from_pylist([vars(item) for item in self])

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the table to a .csv or .parquet file, or everything to a .json file, whole or not at all."""
        return _write(self, path, overwrite)

    def to_json(self) -> str:
        """Return everything as JSON; an infinite number becomes the string "infinity"."""
        head = {
            "protocol": self.protocol, "estimator": self.estimator, "about": self.about,
            "confidence": self.confidence, "people": self.people, "epsilon": json_number(self.epsilon),
            "delta": self.delta, "is_simulation": self.is_simulation, "unbiased_error": self.unbiased_error,
            "expected_error": self.expected_error, "usefulness": self.guessing.to_dict(),
        }  # fmt: skip
        means = [item.to_data() for item in self.means.values()]
        data = {**head, "estimates": [vars(item) for item in self], "means": means}
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        about = f"{len(self.schema)} attributes from {self.people} reports; {self.protocol}, {self.estimator}"
        return f"Estimates({about}, expected error {self.expected_error:.4g}; {self.guessing.verdict})"

    def _repr_html_(self) -> str:
        titles = ("attribute", "value", "frequency", "standard error", "lower", "upper")
        return html_table(repr(self), titles, [list(vars(item).values()) for item in self])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Estimates beside the truth, the true frequencies by attribute, for those who hold it."""

    estimates: Estimates
    truth: Mapping[str, Array]

    @property
    def error(self) -> float:
        """The mean squared error: the mean over attributes of the mean over values (Corr-RR, eq. (5))."""
        schema = self.estimates.schema
        return float(np.mean([np.mean((self.estimates[n] - self.truth[n]) ** 2) for n in schema.names]))

    @property
    def means(self) -> dict[str, float]:
        """The true means of the attributes that are reported as numbers."""
        items = self.estimates.means.items()
        return {name: float(np.dot(item.points, self.truth[name])) for name, item in items}

    @property
    def covered(self) -> float:
        """How many of the intervals hold the truth, as a share."""
        lower, upper = self.estimates.lower, self.estimates.upper
        inside = [(lower[n] <= self.truth[n]) & (self.truth[n] <= upper[n]) for n in self.truth]
        return float(np.concatenate(inside).mean())

    def to_arrow(self) -> pa.Table:
        """Return the table of the estimates with a column `truth`."""
        return self.estimates.to_arrow().append_column("truth", [self._flat()])

    def _flat(self) -> list[float]:
        return [float(value) for name in self.estimates.schema.names for value in self.truth[name]]

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the table to a .csv or .parquet file, or everything to a .json file, whole or not at all."""
        return _write(self, path, overwrite)

    def to_json(self) -> str:
        """Return everything as JSON."""
        data = json.loads(self.estimates.to_json())
        rows = [row | {"truth": value} for row, value in zip(data["estimates"], self._flat(), strict=True)]
        means = [row | {"truth": self.means[row["attribute"]]} for row in data["means"]]
        head = {**data, "error": self.error, "covered": self.covered, "estimates": rows, "means": means}
        return json.dumps(head, indent=2, ensure_ascii=False, allow_nan=False)


def _write(result: Estimates | Comparison, path: str | Path, overwrite: bool) -> Path:
    check_overwrite(path, force=overwrite, fix=SAY_OVERWRITE)
    if Path(path).suffix.lower() == ".json":
        return write_text(path, result.to_json())
    return write_rows(result.to_arrow(), path)


def estimate(
    reports: Reported | Iterable[Reported], *, estimator: Estimator = "best", confidence: float = 0.95,
    about: About = "collected", prior: Frequencies | None = None,
) -> Estimates:  # fmt: skip
    """Estimate the frequencies of all attributes from reports.

    Args:
        reports: of one protocol, or of both phases (as a list); merged aggregates do as well.
        estimator: "best" (posterior means, priors averaged by their evidence; the likeliest for noisy
            numbers), "inversion" (unbiased), "simplex" (projected), "shrinkage", "least-risk" (shrunken or
            projected, as "best" was in 0.1), "em" (the likeliest; needs the reports themselves) or
            "published" (Corr-RR's own estimator, biased).
        confidence: of the intervals.
        about: the frequencies among those who reported ("collected") or in their population.
        prior: frequencies from elsewhere (public data, a first phase), by attribute, which "best" leans
            on as far as the reports bear them out.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("about", about, ABOUT)
    level = check_number("confidence", confidence, above=0, below=1)
    if prior is not None and estimator != "best":
        raise InputError(f"`prior` goes with the estimator 'best', got {estimator!r}; leave one of them out.")
    given = records.listed(reports)
    records.check_once(given)
    parts = merged([item.aggregate() for item in given])
    if estimator == "published":
        check_published(parts)
    schema = parts[0].protocol.schema
    estimates = unbiased(parts, about)
    known = None if prior is None else _known(schema, prior)
    chosen = chosen_by(estimator, estimates, parts, given, known)
    frequencies = chosen.frequencies
    deviations = NormalDist().inv_cdf(0.5 + level / 2)
    lower, upper = _intervals(estimates, frequencies, deviations)
    variances = {name: item.variance(to_simplex(item.estimate)) for name, item in estimates.items()}
    errors = {name: np.sqrt(spread) for name, spread in variances.items()}
    expected = partial(expected_errors, estimator, parts, about, chosen, variances)
    return Estimates(
        schema, frequencies, errors, lower, upper, parts[-1].protocol.name, estimator, about, level,
        sum(part.people for part in parts), max(part.protocol.epsilon for part in parts),
        any(part.is_simulation for part in parts),
        float(np.mean([spread.mean() for spread in variances.values()])),
        expected,
        max(part.protocol.delta for part in parts), means(parts, estimates, deviations, about),
        {name: item.estimate for name, item in estimates.items()}, prior,
    )  # fmt: skip


def _intervals(
    estimates: Mapping[str, Unbiased], frequencies: Frequencies, deviations: float
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the lower and upper ends of intervals, which hold what is stated beside them."""
    lower, upper = {}, {}
    for name, item in estimates.items():
        low, high = item.interval(deviations)
        stated = np.clip(frequencies[name], 0, 1)
        lower[name], upper[name] = np.minimum(low, stated), np.maximum(high, stated)
    return lower, upper


def _known(schema: Schema, prior: Frequencies) -> Frequencies:
    """Return what a prior says about the schema's attributes, after checking that it says something."""
    known = known_frequencies(schema, prior)
    if not known:
        names = ", ".join(schema.names[:5])
        raise InputError(f"`prior` has none of the attributes {names}; name one of them, or leave it out.")
    return known


def merged(parts: Sequence[RecordSums]) -> list[RecordSums]:
    """Merge aggregates of the same protocol, and check that what is left belongs together."""
    if not any(part.people for part in parts):
        raise InputError("there are no reports to estimate from.")
    sums: dict[str, RecordSums] = {}
    for part in parts:
        key = records.fingerprint(part.protocol)
        sums[key] = sums[key] + part if key in sums else part
    seconds = [part for part in sums.values() if part.protocol.first_phase is not None]
    firsts = [part for part in sums.values() if part.protocol.first_phase is None]
    if seconds and not firsts:
        raise InputError(
            f"these are reports of the second phase of {seconds[0].protocol.name!r}; add those of the first, "
            "without which they say too little."
        )
    if len(firsts) > 1:
        raise records.mixed(firsts[0].protocol, firsts[1].protocol)
    for part in seconds:
        first = firsts[0].protocol
        if part.protocol.first_phase != records.fingerprint(first) or part.protocol.schema != first.schema:
            raise records.mixed(first, part.protocol)
    return [*firsts, *seconds]
