"""`estimate_rounds`: levels of every round, changes between them and the mean over all, with intervals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from sidelight.estimation.over_time import Overlap, Series
from sidelight.estimation.round_rows import Change, Level, OverRounds, Turnout, are_covered, plain, rows_of
from sidelight.estimation.unbiased import ABOUT, About, unbiased
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, unknown
from sidelight.foundation.files import SAY_OVERWRITE, check_overwrite, json_plain, write_text
from sidelight.foundation.html import html_table
from sidelight.foundation.intervals import check_confidence, normal_quantile
from sidelight.protocols import records
from sidelight.protocols.groups import ReportedGroup
from sidelight.protocols.records import PanelRound, RecordReports, RecordSums
from sidelight.schema import Attribute, Schema
from sidelight.sources.table import write_rows


@dataclass(frozen=True, eq=False)
class RoundEstimates:
    """Frequencies over the rounds of a panel.

    Errors are about those who reported in each round, or about their population; nothing is known about
    people who did not report.

    Attributes:
        schema: the attributes that some round asked for.
        numbers: the rounds, in order.
        turnout: who reported in each.
        series: by attribute, the rounds that asked for it, and its estimates.
        notes: what a reader must know.
        truth: by round, the true frequencies of each attribute, for those who hold them.
    """

    schema: Schema
    numbers: tuple[int, ...]
    turnout: tuple[Turnout, ...]
    series: Mapping[str, tuple[tuple[int, ...], Series]]
    panel: PanelRound
    protocol: str
    about: About
    confidence: float
    epsilon: float
    is_simulation: bool
    notes: tuple[str, ...] = field(default=())
    truth: Mapping[int, Mapping[str, Array]] | None = None

    def against(self, truth: Mapping[int, Mapping[str, Array]]) -> RoundEstimates:
        """Return the estimates beside the true frequencies of every round, for those who hold them."""
        for number in self.numbers:
            if number not in truth:
                raise unknown("round whose truth is given", str(number), map(str, truth))
        said: tuple[str, ...] = ()
        if self.panel.kept and not self.panel.follow_changes:
            said = ("The truth is of each round's values; where they are frozen, they lag behind it.",)
        return replace(self, truth=truth, notes=(*self.notes, *said))

    @property
    def error(self) -> float | None:
        """The mean squared error of all levels; None where the truth is not known."""
        gaps = [row.frequency - row.truth for row in self.levels() if row.truth is not None]
        return float(np.mean(np.square(gaps))) if gaps else None

    def levels(self, name: str | None = None) -> Iterator[Level]:
        """Return the levels of one attribute, or of all, round by round."""
        reach = normal_quantile(self.confidence)
        for attribute in self._named(name):
            numbers, series = self.series[attribute.name]
            for number, item, spread in zip(numbers, series.levels, series.variances, strict=True):
                low, high = item.interval(reach)
                stated = np.clip(item.estimate, 0.0, 1.0)
                columns = item.estimate, np.sqrt(spread), np.minimum(low, stated), np.maximum(high, stated)
                true = () if self.truth is None else (self.truth[number][attribute.name],)
                yield from rows_of(Level, attribute, (number,), (*columns, *true))

    def best(self, name: str) -> dict[int, Array]:
        """Return by round the frequencies of an attribute with the least error to expect, (values,).

        They are posterior means, as by the estimator "best": on the simplex and not unbiased. For changes
        and sums over rounds take the levels, whose errors do not lean to one side.
        """
        _ = self.schema[name]
        numbers, series = self.series[name]
        return dict(zip(numbers, series.posterior_means, strict=True))

    def changes(self, name: str | None = None) -> Iterator[Change]:
        """Return the changes from each round to the next, and from the first to the last of several."""
        for attribute in self._named(name):
            numbers, _ = self.series[attribute.name]
            pairs = [*pairwise(numbers), *([(numbers[0], numbers[-1])] if len(numbers) > 2 else [])]
            for first, last in pairs:
                yield from self.change(attribute.name, first, last)

    def change(self, name: str, first: int, last: int) -> list[Change]:
        """Return how each value of an attribute changed between two rounds."""
        attribute = self.schema[name]
        numbers, series = self.series[name]
        for number in (first, last):
            if number not in numbers:
                raise unknown(f"round that asked for {name!r}", str(number), map(str, numbers))
        moved, error = series.change(numbers.index(first), numbers.index(last))
        reach = normal_quantile(self.confidence) * error
        ends = (np.clip(end, -1.0, 1.0) for end in (moved - reach, moved + reach))
        true = () if self.truth is None else (self.truth[last][name] - self.truth[first][name],)
        return list(rows_of(Change, attribute, (first, last), (moved, error, *ends, *true)))

    def means(self, name: str | None = None) -> Iterator[OverRounds]:
        """Return the mean over all reports of one attribute, or of all."""
        for attribute in self._named(name):
            mean, error, floor = self.series[attribute.name][1].mean()
            reach = normal_quantile(self.confidence) * error
            ends = (np.clip(end, 0.0, 1.0) for end in (mean - reach, mean + reach))
            yield from rows_of(OverRounds, attribute, (), (mean, error, floor, *ends))

    def _named(self, name: str | None) -> Iterable[Attribute]:
        return self.schema if name is None else [self.schema[name]]

    def to_arrow(self) -> pa.Table:
        """Return the levels: attribute, value, round, frequency, standard_error, lower, upper."""
        return pa.Table.from_pylist([plain(item) for item in self.levels()])

    def changes_to_arrow(self) -> pa.Table:
        """Return the changes: attribute, value, first, last, change, standard_error, lower, upper."""
        return pa.Table.from_pylist([plain(item) for item in self.changes()])

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the levels to a .csv or .parquet file, or everything to a .json file, whole or not at all."""
        check_overwrite(path, force=overwrite, fix=SAY_OVERWRITE)
        if Path(path).suffix.lower() == ".json":
            return write_text(path, self.to_json())
        return write_rows(self.to_arrow(), path)

    def to_json(self) -> str:
        """Return everything as JSON; an infinite number becomes the string "infinity"."""
        head = {
            "protocol": self.protocol, "about": self.about, "confidence": self.confidence,
            "epsilon_of_a_report": self.epsilon, "is_simulation": self.is_simulation,
            "division": self.panel.division, "kept": self.panel.kept, "epoch": self.panel.epoch,
            "rounds": [asdict(item) for item in self.turnout],
        }  # fmt: skip
        changes = [{**plain(item), "is_seen": item.is_seen} for item in self.changes()]
        if self.truth is not None:
            head |= {"error": self.error, "covered": are_covered(self.levels())}
            head |= {"changes_covered": are_covered(self.changes())}
        body = {
            "levels": [plain(item) for item in self.levels()], "changes": changes,
            "means": [vars(item) for item in self.means()], "notes": list(self.notes),
        }  # fmt: skip
        return json.dumps(json_plain(head | body), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        seen = sum(item.is_seen for item in self.changes())
        reports = sum(item.people for item in self.turnout)
        return f"RoundEstimates({len(self.numbers)} rounds, {reports} reports; {seen} changes seen)"

    def _repr_html_(self) -> str:
        titles = ("attribute", "value", "round", "frequency", "standard error", "lower", "upper")
        return html_table(repr(self), titles, [list(vars(item).values())[:7] for item in self.levels()])


def estimate_rounds(
    reports: Iterable[RecordReports], *, confidence: float = 0.95, about: About = "collected"
) -> RoundEstimates:
    """Estimate the frequencies of every round of a panel, and how they change.

    Args:
        reports: of all rounds, in any order; a round may come in several files.
        confidence: of the intervals, each by itself.
        about: the frequencies among those who reported in a round ("collected"), or in their population.
    """
    rounds = _by_round(reports)
    sums = {number: _added(items) for number, items in rounds.items()}
    stamps = {number: _stamp(items[0]) for number, items in rounds.items()}
    return estimate_round_sums(sums, stamps, confidence=confidence, about=about)


def estimate_round_sums(
    sums: Mapping[int, RecordSums], stamps: Mapping[int, PanelRound], *, confidence: float = 0.95,
    about: About = "collected",
) -> RoundEstimates:  # fmt: skip
    """Estimate as `estimate_rounds` does, from the sums of each round and what is known of its people."""
    check_choice("about", about, ABOUT)
    level = check_confidence(confidence)
    if not sums:
        raise InputError("there are no rounds to estimate from.")
    last = stamps[max(stamps)]
    known = _asked(sums)
    series = {
        name: (numbers, _series(name, [sums[n] for n in numbers], [stamps[n] for n in numbers], about))
        for name, numbers in known.items()
    }
    attributes = {a.name: a for part in sums.values() for a in part.protocol.schema}
    return RoundEstimates(
        Schema(tuple(attributes.values())), tuple(sums), tuple(_turnout(stamps)), series, last,
        next(iter(sums.values())).protocol.name, about, level,
        max(part.protocol.epsilon for part in sums.values()),
        any(part.is_simulation for part in sums.values()), tuple(_notes(stamps, level, about)),
    )  # fmt: skip


def _stamp(item: RecordReports) -> PanelRound:
    if item.round is None:
        raise InputError(
            "these reports are of no round of a panel; collect with `round` (--round), or estimate them on "
            "their own."
        )
    return item.round


def _by_round(reports: Iterable[RecordReports]) -> dict[int, list[RecordReports]]:
    """Return the reports of each round, in order, after checking that they are of one panel."""
    given = records.listed(reports)
    items = [item.collected for item in given if item.collected is not None]
    if len(items) < len(given):
        raise InputError("sums do not say which round they are of; give the reports themselves.")
    if not items:
        raise InputError("there are no reports to estimate from.")
    records.check_once(items, rounds=True)
    first = _stamp(items[0])
    rounds: dict[int, list[RecordReports]] = {}
    for item in sorted(items, key=lambda item: _stamp(item).number):
        stamp = _stamp(item)
        if stamp.panel != first.panel or stamp.rounds != first.rounds:
            raise InputError("these reports are of two panels; estimate each on its own.")
        for what in ("division", "epoch", "follow_changes"):
            mine, theirs = stamp.model_dump()[what], first.model_dump()[what]
            if mine != theirs:
                raise InputError(
                    f"rounds {first.number} and {stamp.number} differ in {what}, {theirs!r} and {mine!r}; "
                    "they are of two panels."
                )
        rounds.setdefault(stamp.number, []).append(item)
    for number, parts in rounds.items():
        _check_whole(number, parts)
    return rounds


def _check_whole(number: int, parts: Sequence[RecordReports]) -> None:
    """Raise unless the files of a round are all of it, once."""
    stamp, people = _stamp(parts[0]), sum(part.people for part in parts)
    if any(part.round != stamp for part in parts) or people > stamp.people:
        raise InputError(f"round {number} is there twice, with other reports; name each round once.")
    if people < stamp.people:
        raise InputError(
            f"round {number} has {people} of its {stamp.people} reports; name all files of the round."
        )


def _added(items: Sequence[RecordReports]) -> RecordSums:
    first, *others = (item.aggregate() for item in items)
    return sum(others, first)


def _asked(sums: Mapping[int, RecordSums]) -> dict[str, tuple[int, ...]]:
    """Return the rounds that asked for each attribute, after checking that all did in the same way."""
    numbers: dict[str, tuple[int, ...]] = {}
    ways: dict[str, tuple[int, ReportedGroup, Attribute]] = {}
    for number, part in sums.items():
        for group in part.protocol.groups:
            attribute = part.protocol.schema[group.label]
            earlier, known, alphabet = ways.setdefault(group.label, (number, group, attribute))
            if known.to_file() != group.to_file() or alphabet != attribute:
                told = [f"{item.mechanism!r} at {item.epsilon}" for item in (known, group)]
                raise InputError(
                    f"rounds {earlier} and {number} report {group.label!r} in different ways, {told[0]} and "
                    f"{told[1]}; all rounds of a panel need the same plan."
                )
            numbers[group.label] = (*numbers.get(group.label, ()), number)
    return numbers


def _series(name: str, sums: Sequence[RecordSums], stamps: Sequence[PanelRound], about: About) -> Series:
    levels = tuple(unbiased([part], about)[name] for part in sums)
    group = next(group for group in sums[0].protocol.groups if group.label == name)
    return Series(levels, _overlap(name, stamps), group.randomiser, about == "population")


def _overlap(name: str, stamps: Sequence[PanelRound]) -> Overlap:
    """Return who is in several of the rounds that asked for an attribute."""
    people = np.array([stamp.people for stamp in stamps], dtype=np.float64)
    both = np.minimum.outer(people, people)
    divided = stamps[0].division == "people"
    is_known = divided or all(stamp.stayed is not None for stamp in stamps)
    for place, stamp in enumerate(stamps):
        for earlier, other in enumerate(stamps[:place]):
            if is_known:
                count = 0 if divided or stamp.stayed is None else stamp.stayed[other.number - 1]
                both[place, earlier] = both[earlier, place] = count
    epochs = np.array([stamp.epoch_of(stamp.number) for stamp in stamps])
    shares = (epochs[:, None] == epochs) & (name in stamps[0].kept)
    return Overlap(people, both, is_known, shares, not stamps[0].follow_changes)


def _turnout(stamps: Mapping[int, PanelRound]) -> Iterator[Turnout]:
    before: int | None = None
    for number, stamp in stamps.items():
        stayed = None if before is None or stamp.stayed is None else stamp.stayed[before - 1]
        yield Turnout(number, stamp.people, stayed)
        before = number


def _notes(stamps: Mapping[int, PanelRound], level: float, about: About) -> Iterator[str]:
    first = next(iter(stamps.values()))
    whom = "the people who reported in a round" if about == "collected" else "the population of a round"
    yield (
        f"Intervals are about {whom} and hold with {level:.0%} confidence, each by itself: of changes that "
        f"are none, {1 - level:.0%} seem to be one."
    )
    yield "Nothing is known about people who did not report: who stays away may differ from who does not."
    if first.kept and not first.follow_changes:
        lasts = "the first report" if first.epoch is None else f"the first report of {first.epoch} rounds"
        yield (
            f"Responses to {', '.join(first.kept)} are kept, with the value frozen at {lasts}: levels are of "
            "these values, and change within an epoch only as people join, leave or miss rounds."
        )
    if first.kept and first.follow_changes:
        yield (
            "Nobody can know how many people report from the same response in two rounds, so errors of "
            "changes are at most those given."
        )
    missing = sorted(set(range(1, max(stamps) + 1)) - set(stamps))
    if missing:
        yield f"Rounds that are not among the reports: {', '.join(map(str, missing))}."
