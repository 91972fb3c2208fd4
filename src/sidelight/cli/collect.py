"""The command `collect`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli import common
from sidelight.cli.common import SETTINGS, check_writable, echo_json, first_given, progress, read_table
from sidelight.cli.options import Data, Force, Json, Reading, RecordEpsilon, SaveProtocol, flag, grouped
from sidelight.cli.panel import Asking, collect_panel_round
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import check_not_read, file_name
from sidelight.foundation.terminal import say
from sidelight.protocols.register import PROTOCOLS, make_protocol, options_of

Output = Annotated[
    Path, typer.Option("-o", "--output", help="Write the reports to this .parquet file, or folder.")
]


@dataclass(frozen=True)
class Means:
    """How reports are made: by a plan, a protocol, or published parameters."""

    plan: Path | None = flag(None, "A plan file (.toml or .json).")
    protocol: str | None = flag(
        None,
        f"A protocol file, or 'best' [the default], {', '.join(map(repr, PROTOCOLS))} "
        "('corr-rr', 'cond-rr' and 'adaptive-pairs': the first phase).",
    )
    parameters: Path | None = flag(None, "Published parameters: collect the second phase.")
    epsilon: RecordEpsilon = None
    mechanism: str | None = flag(None, "Inside 'spl', 'smp', 'product' and 'pairs': a name, or 'best' [grr].")
    group: list[str] | None = flag(
        None, "Inside 'product' and 'pairs': attributes together, a,b,c; repeatable."
    )
    prior: str | None = flag(None, "For 'rs+rfd': a public table whose frequencies the fakes follow.")
    share: float | None = flag(None, "People in the first of two phases, of all [0.1; 0.2 for pairs].")

    @property
    def details(self) -> dict[str, Any]:
        """The options of a protocol that is named, not read from a file."""
        return {
            "--epsilon": self.epsilon, "--mechanism": self.mechanism, "--group": self.group,
            "--prior": self.prior, "--share": self.share,
        }  # fmt: skip


@dataclass(frozen=True)
class Writing:
    """How reports are drawn, arranged and written."""

    seed: int | None = flag(None, "Simulate; without a seed the noise protects people.")
    batches: int | None = flag(None, "Write so many report files, each a batch of its own, into a folder.")
    append: bool = flag(
        False, "With --batches: the folder holds reports of other people already.", "--append"
    )
    shuffle: bool = flag(
        True, "Write the reports in a random order, so that row i is not person i; `attack` needs the order."
    )
    force: Force = False
    save_protocol: SaveProtocol = None


@grouped()
def collect(
    *, data: Data, output: Output, means: Means, asking: Asking, writing: Writing, reading: Reading,
    json: Json = False,
) -> None:  # fmt: skip
    """Make one report for each record, as its people would."""
    _check_output(output, writing, (data, means.prior))
    sources = (data, means.prior, means.plan, means.parameters)
    check_writable(writing.save_protocol, SETTINGS, sources=sources)
    common.refuse_several(
        {"--plan": means.plan, "--protocol": means.protocol, "--parameters": means.parameters}
    )
    asking.check(means.plan, writing.batches)
    if asking.round is not None and means.plan is not None:
        _refuse_details(means)
        with progress(quiet=json):
            reports, notes = collect_panel_round(data, means.plan, asking, reading, output, writing.seed)
            _written(reports, output, writing, None)
        _show_collected(reports, [*notes, *sl.report.collected_notes(reports)], output, json)
        return
    with progress(quiet=json):
        given = _given(means)
        if given is None:
            table = read_table(data, reading)
        else:  # its other columns do not matter
            reading = replace(reading, column=reading.column or list(given.plan.names))
            table = read_table(data, reading, given.plan, giver=given.giver)
        reports = _collected(table, given, means, writing.seed, reading.encoding)
        notes = _written(reports, output, writing, table if reading.engine == "local" else None)
    if writing.save_protocol:
        sl.protocols.write_protocol(reports.protocol, writing.save_protocol)
    notes += sl.report.collected_notes(reports)
    if given is None:  # the schema was inferred, so the collector must know what it tells
        published = sl.report.publishing_notes(reports.protocol.schema, "every report file")
        notes += [*table.notes(), *published]
    _show_collected(reports, notes, output, json)


def _written(reports: sl.RecordReports, output: Path, writing: Writing, table: sl.Table | None) -> list[str]:
    """Write the reports; return notes about it.

    A table that is at hand gives a digest, by which an interrupted collection knows its records again.
    """
    from sidelight.foundation.randomness import order_key
    from sidelight.transport.manifest import read_manifest

    order = order_key(writing.seed) if writing.shuffle else None
    if writing.batches is None:
        arranged = reports if order is None else reports.shuffled(order)
        sl.write_reports(arranged, output, overwrite=writing.force)
        return []
    schema = reports.protocol.schema
    records = "" if table is None else sl.transport.digest_of(table, schema, writing.seed)
    begun = read_manifest(output)
    rules: dict[str, Any] = {"append": writing.append, "records": records, "order": order}
    sl.transport.write_batches(reports, output, writing.batches, **rules)
    if begun is None:
        return []
    finished = f"{begun.done} of {begun.batches} batches were finished"
    return [f"An interrupted collection was continued: {finished}; their people have no second report."]


def _check_output(output: Path, writing: Writing, sources: Sequence[str | Path | None]) -> None:
    """Refuse before the work what could not, or must not, be written after it."""
    from sidelight.transport.folder import check_inbox
    from sidelight.transport.manifest import read_manifest

    if writing.batches is None:
        if writing.append:
            raise InputError("--append goes with --batches; give it, or leave --append out.")
        check_writable(output, (".parquet",), sources=sources, force=writing.force)
        return
    if writing.force:
        raise InputError("--force replaces a file, never a folder of reports; name another folder.")
    check_whole("batches", writing.batches, at_least=1)
    for place in (output, output / "batch.parquet"):
        check_not_read(place, *sources)
    if not writing.append and read_manifest(output) is None:
        check_inbox(output)


@dataclass(frozen=True)
class _Given:
    """What a file says about a collection."""

    plan: sl.Plan  # how its columns are coded
    giver: str  # what the file is called in messages
    collect: Callable[[sl.Table, int | None], sl.RecordReports]  # of a table, with a seed or None


def _given(means: Means) -> _Given | None:
    """Return what a plan, protocol or parameters file says; None where a protocol is named, or nothing is."""
    if means.plan:
        planned = sl.Plan.read(means.plan)
        return _Given(planned, "plan", lambda table, seed: sl.collect(table, planned, seed=seed))
    if means.parameters:
        phase, collect_phase = sl.protocols.SecondPhase.read(means.parameters), sl.transport.collect_phase
        coded = sl.Plan.uniform(phase.second.schema)
        return _Given(
            coded, "protocol", lambda table, seed: collect_phase(table, phase.design, phase, seed=seed)
        )
    if means.protocol and Path(means.protocol).suffix.lower() in SETTINGS:
        made = sl.protocols.read_protocol(means.protocol)
        coded = sl.Plan.uniform(made.schema)
        return _Given(coded, "protocol", lambda table, seed: sl.collect(table, made, seed=seed))
    return None


def _collected(
    table: sl.Table, given: _Given | None, means: Means, seed: int | None, encoding: str
) -> sl.RecordReports:
    if given is None:
        made = _named_protocol(table.schema, means.protocol or "best", means.details, encoding)
        return sl.transport.collect_phase(table, made, seed=seed)
    _refuse_details(means)
    return given.collect(table, seed)


def _refuse_details(means: Means) -> None:
    """Refuse what a file says already."""
    if option := first_given(means.details):
        raise InputError(f"{option} is in the file already; change it there, or leave it out.")


USES = {"--mechanism": "mechanism", "--group": "groups", "--prior": "priors", "--share": "share"}
"""The argument of `make_protocol` that each option of the command sets."""


def _named_protocol(
    schema: sl.Schema, name: str, options: dict[str, Any], encoding: str
) -> sl.protocols.Design:
    for option, parameter in USES.items():
        names = [known for known in PROTOCOLS if parameter in options_of(known)]
        if options[option] is not None and name not in names:
            raise InputError(
                f"{option} belongs to --protocol {' or '.join(names)}, got {name!r}; leave one out."
            )
    budget = 1.0 if options["--epsilon"] is None else options["--epsilon"]
    if name == "best":
        return sl.advice.choose_protocol(schema, budget)
    groups = [part.split(",") for part in options["--group"] or []] or None
    prior = options["--prior"]
    if name == "rs+rfd" and prior is None:
        raise InputError(
            "--protocol rs+rfd needs --prior, a public table whose frequencies the fakes follow."
        )
    given = {"mechanism": options["--mechanism"], "groups": groups, "share": options["--share"]}
    kept = {option: value for option, value in given.items() if value is not None}
    if prior:
        public = sl.read(prior, schema=schema, encoding=encoding)
        kept["priors"] = sl.transport.true_frequencies(public, schema)
        kept["origin"] = f"public data: {file_name(prior)}"
    return make_protocol(name, schema, budget, **kept)


def _show_collected(reports: sl.RecordReports, notes: list[str], output: Path, json: bool) -> None:
    protocol = reports.protocol
    if json:
        echo_json({
            "protocol": protocol.name, "people": reports.people, "epsilon": protocol.epsilon,
            "delta": protocol.delta, "proof": protocol.proof, "is_simulation": reports.is_simulation,
            "output": str(output), "notes": notes,
            **({} if reports.round is None else {"round": reports.round.model_dump()}),
        })  # fmt: skip
        return
    say(f"{reports.people} reports of {protocol.name!r} are in {output}.")
    failing = f", with delta {protocol.delta:.3g}" if protocol.delta else ""
    if math.isfinite(protocol.epsilon):
        say(f"A record's budget is {protocol.epsilon:.6g}{failing}: {protocol.proof}.")
    else:
        say("A record's budget is infinite.")
    for note in notes:
        say(note)
