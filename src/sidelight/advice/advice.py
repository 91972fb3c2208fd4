"""`advise`: which protocol to use for so many people, attributes, values and so much budget."""

from __future__ import annotations

import heapq
import json
import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from sidelight.estimation import expected_error
from sidelight.estimation.estimates import Estimates
from sidelight.estimation.expected_error import Frequencies
from sidelight.estimation.prospect import Prospect, prospect
from sidelight.estimation.simulated import Part
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import check_whole
from sidelight.foundation.html import html_table
from sidelight.foundation.progress import track
from sidelight.protocols.direct import Sample, Split, smp, spl
from sidelight.protocols.fake_data import rs_fd, rs_rfd, uniform
from sidelight.protocols.groups import BEST, ReportedGroup, best_mechanism, make_group
from sidelight.protocols.protocol import Design, Protocol, check_budget, domain_size
from sidelight.protocols.two_phase import TwoPhase
from sidelight.schema import Schema

Known = Frequencies | Estimates | None
MOST_VALUES = 500
"""Protocols with fakes are compared up to this many values of all attributes together."""
_SHARES = 1 << 20
_SEED = 20_250_102


@dataclass(frozen=True, eq=False)
class Option:
    """One protocol, ready to collect with, its realised budget of a record, and what to expect of it.

    Errors are mean squared errors: of the unbiased estimate (of a published estimator: of that, its bias
    included), and of the estimator "best", None where it is not predicted. `groups` are reported together.
    """

    name: str
    protocol: Design
    epsilon: float
    unbiased_error: float
    best_error: float | None
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def error(self) -> float:
        """The smaller of the errors to expect."""
        return self.unbiased_error if self.best_error is None else min(self.best_error, self.unbiased_error)


@dataclass(frozen=True, eq=False)
class Advice:
    """The protocols in order of the error to expect, the best first.

    So many people would report at that budget of a record. `origin` says where the assumed frequencies came
    from, `notes` what else a reader must know. `within` is the precision that people are counted for, `prior`
    what could be guessed from public data; see `prospect`.
    """

    options: tuple[Option, ...]
    people: int
    epsilon: float
    origin: str
    notes: tuple[str, ...] = ()
    frequencies: Frequencies | None = None
    within: float | None = None
    prior: Frequencies | None = None

    @property
    def advised(self) -> Option:
        """The option that is advised: the best that needs one phase."""
        return next(option for option in self.options if option.protocol.two_phase is None)

    @property
    def compares_fakes(self) -> bool:
        """Whether protocols that hide their choice were compared, see `MOST_VALUES`."""
        return compares_fakes(self.choice.schema)

    @property
    def choice(self) -> Protocol:
        """The protocol that is advised."""
        return self.advised.protocol.first

    @cached_property
    def usefulness(self) -> Usefulness:
        """The error of the advised protocol's estimates beside that of guessing."""
        return usefulness(self.choice, self.people, self.frequencies, prior=self.prior)

    @cached_property
    def prospect(self) -> Prospect:
        """The same with what would help, which takes a moment."""
        return prospect(
            self.choice, self.people, self.frequencies,
            prior=self.prior, within=self.within, limit=self.epsilon,
        )  # fmt: skip

    def to_json(self) -> str:
        """Return the table as JSON."""
        rows = [
            {
                "protocol": option.name, "epsilon": option.epsilon,
                "unbiased_error": _finite(option.unbiased_error),
                "best_error": _finite(option.best_error),
                "groups": [list(group) for group in option.groups],
            }
            for option in self.options
        ]  # fmt: skip
        head = {"people": self.people, "epsilon": self.epsilon, "assumed": self.origin}
        rest = {"advised": self.advised.name, "options": rows, "notes": self.notes}
        use = {"usefulness": self.prospect.to_dict()}
        return json.dumps(head | rest | use, indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        about = f"{self.people} people, epsilon {self.epsilon:g}"
        use = self.usefulness.verdict
        return f"Advice({self.advised.name}, of {len(self.options)} protocols for {about}; {use})"

    def _repr_html_(self) -> str:
        rows = [[item.name, item.epsilon, item.unbiased_error, item.best_error] for item in self.options]
        titles = ("protocol", "epsilon of a record", "error, unbiased", "error, best estimator")
        return html_table(repr(self), titles, rows)


def advise(
    schema: Schema, epsilon: float, people: int, frequencies: Known = None, origin: str = ""
) -> Advice:
    """Compare the protocols by the error to expect, at a budget of a record and so many people who report.

    Frequencies are of public data, or the estimates of a first phase; `origin` says in words where they came
    from. Where nothing is known all are equally likely: uniform ones would flatter every estimator that leans
    on uniformity.
    """
    check_budget(epsilon)
    check_whole("people", people, at_least=1)
    known, source = _known(schema, frequencies, origin)
    cases = [known] if known is not None else _equally_likely(schema)
    ours = choose_protocol(schema, epsilon, known)
    protocols: dict[str, Design] = {
        f"ours ({ours.name})": ours,
        "smp (best mechanism)": smp(schema, epsilon, BEST),
        "smp (grr)": smp(schema, epsilon),
        "spl (grr)": spl(schema, epsilon),
    }
    if len(schema) > 1 and domain_size(schema.sizes) <= LARGEST_GROUP:
        protocols["product (grr)"] = Split(schema, (make_group(schema, schema.names, "grr", epsilon),))
    if compares_fakes(schema):
        protocols["rs+fd"] = rs_fd(schema, epsilon)
        if known is not None:
            protocols["rs+rfd"] = rs_rfd(schema, epsilon, known, source)
        if len(schema) > 1:
            protocols["corr-rr"] = TwoPhase(schema, epsilon)
            protocols["cond-rr"] = TwoPhase(schema, epsilon, "cond-rr")
    options = [_option(*item, people, cases) for item in track(list(protocols.items()), "protocols")]
    if "corr-rr" in protocols:
        options.append(_published(schema, epsilon, people, cases))
    ordered = tuple(sorted(options, key=lambda option: option.error))
    return Advice(ordered, people, epsilon, source, frequencies=known)


def compares_fakes(schema: Schema) -> bool:
    """Whether protocols with fakes are compared: their systems of equations grow with all values together."""
    return sum(schema.sizes) <= MOST_VALUES


def _equally_likely(schema: Schema) -> list[Frequencies]:
    """Return frequencies drawn evenly from all there are; fewer draws where there are many values."""
    rng = np.random.default_rng(_SEED)
    draws = 6 if sum(schema.sizes) <= 100 else 1
    return [{item.name: rng.dirichlet(np.ones(item.size)) for item in schema} for _ in range(draws)]


def _known(schema: Schema, frequencies: Known, origin: str) -> tuple[Frequencies | None, str]:
    if frequencies is None:
        return None, "nothing is known, so all frequencies are equally likely"
    if isinstance(frequencies, Estimates):
        projected = {name: to_simplex(frequencies[name]) for name in schema.names}
        return projected, origin or f"estimates from {frequencies.people} reports"
    named = [name for name in schema.names if name in frequencies]
    given = {name: np.asarray(frequencies[name], dtype=np.float64) for name in named}
    expected_error.check_frequencies(schema, given)
    return given, origin or "frequencies given by hand"


def _option(name: str, protocol: Design, people: int, cases: Sequence[Frequencies]) -> Option:
    reported = () if protocol.two_phase is not None else protocol.first.groups
    errors = [
        expected_error.predicted_errors(protocol, people, case, part=Part(place, len(cases)))
        for place, case in enumerate(cases)
    ]
    raw = float(np.mean([pair[0] for pair in errors]))
    best = float(np.mean([pair[1] for pair in errors])) if math.isfinite(raw) else None
    return Option(name, protocol, protocol.first.epsilon, raw, best, tuple(g.names for g in reported))


def _published(schema: Schema, epsilon: float, people: int, cases: Sequence[Frequencies]) -> Option:
    design = TwoPhase(schema, epsilon)
    trials = max(expected_error.PUBLISHED_TRIALS // len(cases), 4)
    error = float(np.mean([expected_error.published_error(design, people, case, trials) for case in cases]))
    return Option("corr-rr as published", design, design.first.epsilon, error, None)


def choose_protocol(schema: Schema, epsilon: float, frequencies: Frequencies | None = None) -> Split | Sample:
    """Return the direct protocol with the least error to expect.

    Groups are sampled in proportion to the root of their error, which is best for a given grouping: with A_u
    the summed error of one report of group u, n people expect (sum of sqrt A_u)^2 / n. So groups are merged
    while that lowers the sum of roots; even groupings are tried as well, and SPL.
    """
    check_budget(epsilon)
    known = frequencies if frequencies is not None else uniform(schema)
    groupings = [merged_groups(schema, epsilon, known), *even_groups(schema)]
    options: list[Split | Sample] = [_sampled(schema, epsilon, known, groups) for groups in groupings]
    options.append(spl(schema, epsilon, BEST))
    # The order does not depend on how many people there are.
    return min(options, key=lambda option: expected_error.predicted_error(option, 1_000_000, known))


def _sampled(
    schema: Schema, epsilon: float, known: Frequencies, groups: Sequence[Sequence[str]]
) -> Split | Sample:
    made = tuple(make_group(schema, group, BEST, epsilon) for group in groups)
    if len(made) == 1:
        return Split(schema, made)
    return Sample(schema, made, _shares([expected_error.group_error(group, known) for group in made]))


def _shares(errors: Sequence[float]) -> tuple[int, ...]:
    """Return sampling shares in proportion to the roots; equal where they nearly are."""
    roots = np.sqrt(errors)
    if roots.max() <= 1.01 * roots.min():
        return (1,) * len(errors)
    return tuple(max(1, round(_SHARES * root / roots.sum())) for root in roots)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


LARGEST_GROUP = 4096
"""A group has at most so many combinations of values."""

Kind = tuple[tuple[int, float], ...]
"""What the cost of a group depends on: of each member its size and the mean square of its frequencies."""


def even_groups(schema: Schema) -> list[list[tuple[str, ...]]]:
    """Return the groupings into runs of equal length."""
    groupings = []
    names, sizes = schema.names, schema.sizes
    for length in range(2, min(len(schema), LARGEST_GROUP.bit_length()) + 1):  # of two values or more each
        starts = range(0, len(schema), length)
        if all(domain_size(sizes[i : i + length]) <= LARGEST_GROUP for i in starts):
            groupings.append([names[i : i + length] for i in starts])
    return groupings


def merged_groups(schema: Schema, epsilon: float, frequencies: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """Merge the two groups whose merging lowers the sum of the roots of their errors most, until none does.

    Groups of one kind are interchangeable, so that pairs of kinds are compared, not pairs of groups.
    """
    search = _Search(epsilon)
    for attribute in schema:
        square = float(np.mean(np.square(frequencies[attribute.name])))
        search.add((attribute.name,), ((attribute.size, square),))
    while (pair := search.best()) is not None:
        first, second = (search.groups[kind].popleft() for kind in pair)
        search.add(first + second, tuple(sorted(pair[0] + pair[1])))
    return [group for groups in search.groups.values() for group in groups]


@dataclass(eq=False)
class _Search:
    """The groups so far by kind, the oldest first, and the pairs of kinds whose merging helps.

    Gains are what merging a pair saves, negative so that the most helpful is first, how old its kinds are
    (the number each had when it was first seen), and the pair.
    """

    epsilon: float
    groups: defaultdict[Kind, deque[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(deque))
    gains: list[tuple[float, int, int, Kind, Kind]] = field(default_factory=list)
    ages: dict[Kind, int] = field(default_factory=dict)

    def add(self, group: tuple[str, ...], kind: Kind) -> None:
        """Add a group, and what merging it with those of every kind would save."""
        alone = len(self.groups[kind])
        self.groups[kind].append(group)
        age = self.ages.setdefault(kind, len(self.ages))
        if alone > 1:
            return  # nothing is new: two of the kind are there already
        for other in [kind] if alone else [known for known, members in self.groups.items() if members]:
            combinations = domain_size([size for size, _ in kind + other])
            if (other == kind) != bool(alone) or combinations > LARGEST_GROUP:
                continue
            saved = _cost(kind, self.epsilon) + _cost(other, self.epsilon)
            saved -= _cost(tuple(sorted(kind + other)), self.epsilon)
            if saved > 0:
                older, newer = sorted([(age, kind), (self.ages[other], other)])
                heapq.heappush(self.gains, (-saved, older[0], newer[0], older[1], newer[1]))

    def best(self) -> tuple[Kind, Kind] | None:
        """Return the pair of kinds whose merging saves most, or None where no merging does."""
        while self.gains:
            first, second = self.gains[0][3:]
            if len(self.groups[first]) > (first == second) and self.groups[second]:
                return first, second
            heapq.heappop(self.gains)  # it comes back once there are such groups again
        return None


@lru_cache(maxsize=1 << 16)
def _cost(kind: Kind, epsilon: float) -> float:
    """Return the root of the summed mean variance of one report's estimates, see `group_error`."""
    moments = _moments(tuple(size for size, _ in kind), epsilon)
    parts = zip(moments, kind, strict=True)
    return math.sqrt(sum(none + (full - none) / size - square for (none, full), (size, square) in parts))


@lru_cache(maxsize=1 << 12)
def _moments(sizes: tuple[int, ...], epsilon: float) -> tuple[tuple[float, float], ...]:
    """Return the mean squares of a group of such sizes, see `ReportedGroup.moments`."""
    names = tuple(map(str, range(len(sizes))))
    chosen, settings = best_mechanism(sizes, epsilon)
    group = ReportedGroup(names, sizes, chosen, epsilon, settings)
    moments = [group.moments[name] for name in names]
    return tuple(pair for pair in moments if pair is not None)  # the best mechanisms have them all
