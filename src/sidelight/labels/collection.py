"""Who sends what: people are dealt to attributes, and some of them to learning omega.

Everyone sends one report about one attribute and the label, so the whole budget goes into it (CLLDP,
section 5.1). With LabelDP everyone sends all attributes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Whole
from sidelight.foundation.errors import InputError, check_choice, check_number, invalid
from sidelight.foundation.randomness import below, derive_seed, randomness
from sidelight.labels.leakage import check_label_budget, check_omega, row_shares
from sidelight.labels.omega import (
    LabelSample,
    Omega,
    WidthRule,
    chosen_width,
    heads_least_variance,
    hoped_curve,
    learn_omegas,
    sample_response,
)
from sidelight.labels.responses import (
    AttributeReports,
    BasicResponse,
    HeadsResponse,
    LabelOnlyResponse,
    LabelResponse,
)
from sidelight.labels.value_response import ValueOnlyResponse
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection

ProtocolName = Literal["khr", "basic", "labeldp", "valuedp"]
OmegaSource = float | Literal["auto", "learnt", "known"] | Sequence[Omega]
Secret = Literal["both", "label", "attributes"]
PROTOCOLS = ("khr", "basic", "labeldp", "valuedp")
SECRETS: tuple[Secret, ...] = ("both", "label", "attributes")
_SENDING_THE_REST: dict[str, ProtocolName] = {"label": "labeldp", "attributes": "valuedp"}
_LABEL_SHARE = 0.2  # a label has few values, so that few reports pin it down
_WORTH = 0.2  # of the variance, for a promise that holds with a confidence only


@dataclass(frozen=True)
class LabelSettings:
    """How labelled records are collected.

    Attributes:
        epsilon: the budget of the label; of the attributes where only they are secret.
        protocol: "khr", "basic" or "labeldp"; "valuedp" where only the attributes are secret.
        omega: "learnt" from a share of the people, "known" (the records' own: an adversary who knows them
            exactly, for simulation), a number that no single value's weight exceeds, one `Omega` for each
            attribute, as public records give them, or "auto": learnt where that is predicted to pay, else 1.
        k: "search", "published" or a number.
        confidence: of a learnt omega; None for the point estimate, which promises nothing.
        share: of the people that omega is learnt from.
        secret: "both" the attributes and the label; only the "label", the attributes being public and sent as
            they are; or only the "attributes", the label being public.
    """

    epsilon: float = 1.0
    protocol: ProtocolName = "khr"
    omega: OmegaSource = "auto"
    k: WidthRule | int = "search"
    confidence: float | None = 0.95
    share: float = 0.1
    secret: Secret = "both"

    def __post_init__(self) -> None:
        self._settle_protocol()
        check_label_budget(self.epsilon)
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_number("share", self.share, above=0, below=1)
        if self.confidence is not None:
            check_number("confidence", self.confidence, above=0, below=1)
        if isinstance(self.omega, str):
            check_choice("omega", self.omega, ("auto", "learnt", "known"))
        elif not isinstance(self.omega, Sequence):
            check_omega(self.omega)
        elif not all(isinstance(omega, Omega) for omega in self.omega):
            raise invalid(
                "omega", "'auto', 'learnt', 'known', a number or one `Omega` an attribute", self.omega
            )

    def _settle_protocol(self) -> None:
        """Take the protocol that the secret asks for, and refuse one that hides something else."""
        check_choice("secret", self.secret, SECRETS)
        check_choice("protocol", self.protocol, PROTOCOLS)
        needed = _SENDING_THE_REST.get(self.secret)
        if needed is None and self.protocol == "valuedp":
            raise InputError("`protocol` valuedp shows the label; use secret='attributes', or khr.")
        if needed is not None and self.protocol not in ("khr", needed):  # khr is what nobody chose
            raise InputError(
                f"`protocol` {self.protocol!r} hides attributes and label alike; with secret={self.secret!r} "
                "leave it out."
            )
        object.__setattr__(self, "protocol", needed or self.protocol)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Coded records with a label, as the people hold them: codes (people, attributes) and labels (people,).

    The attributes have `sizes` values, the label has `classes`; `ordered` says which attributes are bins of
    numbers, in their order, if that is known.
    """

    codes: AnyCodes
    labels: AnyCodes
    sizes: tuple[int, ...]
    classes: int
    ordered: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape != (len(self.labels), len(self.sizes)):
            wanted = f"one row for each of {len(self.labels)} people, {len(self.sizes)} columns"
            raise invalid("codes", wanted, f"shape {self.codes.shape}")
        if not self.sizes:
            raise InputError("there must be at least one attribute beside the label, got none.")
        if self.classes < 2:
            raise InputError("the label is constant; there is nothing to learn from one class.")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: NDArray[Any]) -> LabelledRows:
        return replace(self, codes=self.codes[rows], labels=self.labels[rows])

    def table(self, attribute: int) -> Array:
        """Return the counts of (label, value) of one attribute."""
        return self.counts(self.codes[:, attribute], self.sizes[attribute])

    def counts(self, cells: NDArray[np.integer[Any]], size: int) -> Array:
        """Return the counts of (label, cell), where each record lies in one of `size` cells."""
        pairs = self.labels.astype(np.int64) * size + cells
        counts = np.bincount(pairs, minlength=self.classes * size)
        return counts.reshape(self.classes, size).astype(np.float64)

    def conditionals(self, attribute: int) -> Array:
        """Return Pr(value | label) of one attribute; NaN rows for labels that nobody has."""
        return row_shares(self.table(attribute))


def deal(people: int, groups: int, *, seed: int | None, stream: str) -> Whole:
    """Return a uniformly random group for each person."""
    if groups < 1:
        raise InputError("people must be dealt to at least one group, got none.")
    source = randomness(seed, f"deal/{stream}")
    return below(source, 0, people, np.array([groups], dtype=np.uint64))[:, 0].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Settled:
    """Omega for each attribute, who is left to report for the model, and the reports omega was learnt from.

    These are reports of pairs at the whole budget too: a model may learn from them as well.
    """

    omegas: list[Omega]
    rows: LabelledRows
    samples: tuple[AttributeReports, ...] = ()


def settle_omegas(
    rows: LabelledRows, settings: LabelSettings, *, seed: int | None, reused: bool = False
) -> Settled:
    """Settle omega for each attribute; `reused` says whether the model learns from the samples too."""
    source = settings.omega
    if settings.protocol != "khr":
        return Settled([Omega(np.ones(size), "not used") for size in rows.sizes], rows)
    if isinstance(source, Sequence) and not isinstance(source, str):
        if [len(omega.curve) for omega in source] != list(rows.sizes):
            raise InputError("`omega` must have one curve for each attribute, as long as its values.")
        return Settled(list(source), rows)
    if source == "auto":
        pays = learning_pays(rows, settings, reused=reused)
        source = "learnt" if pays else 1.0
    if source == "learnt":
        return _learn(rows, settings, seed)
    if source == "known":
        columns = range(len(rows.sizes))
        known = [Omega.known(rows.conditionals(i), "the records themselves") for i in columns]
        return Settled(known, rows)
    weight = check_omega(source)
    return Settled([Omega.given(1.0 if size == 1 else weight, size) for size in rows.sizes], rows)


def learning_pays(rows: LabelledRows, settings: LabelSettings, *, reused: bool = False) -> bool:
    """Whether omega from a share of the people is predicted to lower the error of the tables.

    Only sizes and the number of people enter, so the prediction says nothing about anyone. It is the most
    that can be hoped for: labels and values that are all alike, where omega is least. What is learnt is an
    upper limit, hence 1 where noise is wide; then those who were asked for it are missed, unless their
    reports are reused. A promise that rests on a learnt omega must buy something: a fifth of the variance.
    """
    if settings.confidence is None:
        return False  # a point estimate promises nothing, so nobody gets it unasked
    asked = round(settings.share * len(rows) * (1 - _LABEL_SHARE) / len(rows.sizes))
    ratios = []
    for size in rows.sizes:
        sample = sample_response(size, rows.classes, settings.epsilon)
        cells = len(rows.sizes) * size * rows.classes
        curve = hoped_curve(sample, asked, (1 - settings.confidence) / (2 * cells))
        plain, hoped = (
            heads_least_variance(size * rows.classes, settings.epsilon, part)
            for part in (np.ones(size), curve)
        )
        sampled = settings.share * (1 - _LABEL_SHARE) * plain / sample.total_variance(1) if reused else 0.0
        ratios.append((1 - settings.share) * plain / hoped + sampled)
    return float(np.mean(ratios)) > 1 / (1 - _WORTH)


def _learn(rows: LabelledRows, settings: LabelSettings, seed: int | None) -> Settled:
    """Take a share of the people by chance, a fifth of them for the label alone, the rest by attribute."""
    order = np.argsort(randomness(seed, "omega/who").words(0, len(rows)))
    sampled, left = np.split(order, [max(1, round(settings.share * len(rows)))])
    about_label, rest = np.split(sampled, [max(1, round(_LABEL_SHARE * len(sampled)))])
    responses = [sample_response(size, rows.classes, settings.epsilon) for size in rows.sizes]
    samples = gather(rows[rest], responses, seed=seed, streams=("omega", "omega"))
    selection = SubsetSelection(rows.classes, settings.epsilon)
    noise = derive_seed(seed, "omega/label")
    sample = LabelSample.of(selection, selection.randomise(rows.labels[about_label], seed=noise))
    omegas = learn_omegas(samples, sample, confidence=settings.confidence)
    return Settled(omegas, rows[np.sort(left)], tuple(samples))


def make_response(settings: LabelSettings, values: int, classes: int, omega: Omega) -> LabelResponse:
    """Return the protocol of one attribute."""
    epsilon = settings.epsilon
    if settings.protocol == "basic":
        return BasicResponse(values, classes, epsilon)
    if settings.protocol == "labeldp":
        return LabelOnlyResponse(values, classes, epsilon)
    if settings.protocol == "valuedp":
        return ValueOnlyResponse(values, classes, epsilon)
    width = chosen_width(settings.k, values * classes, epsilon, omega.curve)
    return HeadsResponse(values, classes, epsilon, width, omega.at(width))


def make_responses(
    settings: LabelSettings, rows: LabelledRows, omegas: Sequence[Omega]
) -> list[LabelResponse]:
    """Return the protocol of every attribute."""
    sizes = zip(rows.sizes, omegas, strict=True)
    return [make_response(settings, size, rows.classes, omega) for size, omega in sizes]


def gather(
    rows: LabelledRows,
    responses: Sequence[LabelResponse],
    *,
    seed: int | None,
    streams: tuple[str, str] = ("attributes", "attribute"),
) -> list[AttributeReports]:
    """Return each attribute's reports (CLLDP, Algorithm 3, user side).

    People are dealt to attributes; with LabelDP everyone sends all attributes and one randomised label. The
    streams name the randomness of the deal and of the noise.
    """
    gathered = []
    # One label report serves all attributes: more would spend more.
    if isinstance(responses[0], LabelOnlyResponse):
        sets = responses[0].mechanism.randomise(rows.labels, seed=derive_seed(seed, "label"))
        for attribute, response in enumerate(responses):
            shown = rows.codes[:, [attribute]].astype(np.uint16)
            reports = Reports(np.concatenate([shown, sets.values], axis=1), None, sets.is_simulation)
            gathered.append(AttributeReports(attribute, response, reports, np.arange(len(rows))))
        return gathered
    groups = deal(len(rows), len(rows.sizes), seed=seed, stream=streams[0])
    for attribute, response in enumerate(responses):
        people = np.flatnonzero(groups == attribute)
        part = rows[people]
        noise = derive_seed(seed, f"{streams[1]}/{attribute}")
        reports = response.randomise(part.codes[:, attribute], part.labels, seed=noise)
        gathered.append(AttributeReports(attribute, response, reports, people))
    return gathered
