"""The commands `serve` and `service`: run a collection service, and look after it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import check_writable, need_service
from sidelight.cli.options import Force, flag, grouped
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import read_text, write_atomically
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.plan import Plan
    from sidelight.protocols.protocol import Design
    from sidelight.schema import Schema
    from sidelight.service.task import Task

Folder = Annotated[Path, typer.Argument(help="The folder of the embedded store; made on first use.")]
Database = Annotated[
    str | None, typer.Option("--database", help="A postgresql:// URL instead of the embedded store.")
]
Offered = Annotated[
    Path | None, typer.Option("--task", help="Make this task and open its first round, unless it is there.")
]
Passphrase = Annotated[
    Path | None, typer.Option("--passphrase", help="A file whose first line encrypts the backup.")
]
HERE = Path()

app = typer.Typer(name="service", help="Look after a service: tasks, keys, backups.", rich_markup_mode=None)


@dataclass(frozen=True)
class Address:
    """Where the service listens."""

    host: str = flag("127.0.0.1", "The address to listen on.")
    port: int = flag(8000, "The port; 0 takes a free one.")
    workers: int = flag(1, "Processes that serve; several need --database to gain from it.")
    certificate: Path | None = flag(None, "A TLS certificate (PEM); a proxy in front may do TLS instead.")
    key: Path | None = flag(None, "The certificate's key.")


@dataclass(frozen=True)
class Bounds:
    """What senders may do."""

    rate: float = flag(100.0, "Requests a second of one address, in the long run; 0 without limit.")
    burst: int = flag(1000, "Requests of one address at once.")
    body: int = flag(8, "The largest request, in MiB.")


@grouped(project=False)
def serve(
    *,
    folder: Folder = HERE,
    database: Database = None,
    task: Offered = None,
    address: Address,
    bounds: Bounds,
) -> None:
    """Run a collection service: devices send reports, operators open, close and publish rounds."""
    need_service("the service")
    from sidelight.service.app import Settings
    from sidelight.service.rates import Limits
    from sidelight.service.server import Listening, first_key, offer, store_in
    from sidelight.service.server import serve as run

    place = database or store_in(folder)
    listening = Listening(**vars(address))
    settings = Settings(place, Limits(bounds.body << 20, rate=bounds.rate, burst=bounds.burst))
    document = None if task is None else _document(task)

    def ready(url: str) -> None:
        if key := first_key(place):
            say(f"The first operator's key, shown only now: {key}")
        if document is not None:
            say(f"People answer at {url}/t/{offer(place, document)}")
        say(f"Sidelight serves {'PostgreSQL' if database else place} on {url}; stop with Ctrl-C.")

    try:
        run(settings, listening, ready)
    except KeyboardInterrupt:
        say("Stopped; everything that was answered is stored.")


@dataclass(frozen=True)
class Terms:
    """The terms of a task."""

    purpose: str = flag(None, "What the figures are for, in words that everyone reads.")
    contact: str = flag(None, "Whom to write to.")
    rounds: int | None = flag(None, "How often a protocol is asked [1]; other designs have their own number.")
    smallest_crowd: int = flag(100, "Figures of fewer people are shown to nobody.")
    retention_days: int | None = flag(None, "Days after publication until sums and ids are dropped.")
    most_reports: int | None = flag(None, "How many reports a round takes.")
    tokens: bool = flag(False, "Each report needs a one-time token.", "--tokens")
    keep_reports: bool = flag(False, "Keep the reports themselves.", "--keep-reports")
    close_at: int | None = flag(None, "Close a round when it has so many reports, and open the next.")
    close_after: int | None = flag(None, "Close a round so many seconds after it was opened; open the next.")


@dataclass(frozen=True)
class Courses:
    """How a task goes on where it is more than one protocol."""

    phases: str | None = flag(None, "Ask in two phases, 'corr-rr', 'cond-rr' or 'pairs'.")
    epsilon: float | None = flag(None, "With --phases or --label: the budget.")
    label: str | None = flag(None, "Learn a model of this attribute from the others.")
    model: str = flag("bayes", "With --label: 'bayes' or 'tree', which is grown in rounds.")
    depth: int = flag(3, "With --model tree: its depth, and its number of rounds.")
    protocol: str = flag("khr", "With --label: 'khr', 'basic' or 'labeldp'.")
    secret: str = flag("both", "With --label: 'both', or 'label' where the attributes are public.")
    omega: str = flag("1", "With --label: what no value's weight exceeds, or 'learnt' in a round before.")
    division: str = flag("none", "Of a panel: what rounds divide, 'people', 'budget' or 'none'.")
    epoch: int | None = flag(None, "Of a panel: how many rounds a kept response lasts [all].")
    follow_changes: bool = flag(
        False, "Of a panel: report new values within an epoch too.", "--follow-changes"
    )


DesignFile = Annotated[Path, typer.Argument(help="A plan or a protocol (.toml or .json).")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Write the task to this .json file.")]


@app.command("task")
@grouped(project=False)
def make_task(
    *, design: DesignFile, output: Output, terms: Terms, courses: Courses, force: Force = False
) -> None:
    """Write a task from a plan or a protocol: what is posted to a service.

    A plan whose `times` are above 1 is a panel. With --phases or --label the file says which attributes
    there are.
    """
    check_writable(output, (".json",), sources=(design,), force=force)
    made = _task(design, terms, courses)
    write_atomically(output, lambda place: place.write_bytes(made.document), replace=force)
    say(
        f"The task {made.id} is in {output}; it has {made.rounds} round{'s' * (made.rounds > 1)}, and each "
        f"person spends at most {made.epsilon:g}."
    )


def _task(path: Path, terms: Terms, courses: Courses) -> Task:
    from sidelight.service.course import course_of
    from sidelight.service.task import Pace, Task
    from sidelight.service.task import Terms as Conditions

    if not terms.purpose or not terms.contact:
        raise InputError("a task needs --purpose and --contact: everyone who is asked reads them.")
    design = _design(path, courses)
    conditions = Conditions(
        terms.smallest_crowd, terms.retention_days, terms.most_reports, terms.tokens, terms.keep_reports
    )
    timed = (terms.close_at, terms.close_after)
    pace = None if timed == (None, None) else Pace(*timed)
    rounds = terms.rounds or course_of(design, 1).rounds
    return Task(design, terms.purpose, terms.contact, rounds, conditions, pace)


def _design(path: Path, courses: Courses) -> Design:
    """Return how a task collects what a plan or a protocol names."""
    from sidelight.foundation.strict import read_data
    from sidelight.plan import Plan
    from sidelight.protocols.direct import planned
    from sidelight.protocols.files import protocol_from
    from sidelight.protocols.panel import Panel
    from sidelight.protocols.two_phase import TwoPhase
    from sidelight.service.panels import PanelDesign

    chosen = courses.phases is not None, courses.label is not None
    if all(chosen):
        raise InputError("--phases and --label are two designs; leave one out.")
    if any(chosen) != (courses.epsilon is not None):
        raise InputError("--phases or --label and --epsilon go together; give both, or leave both out.")
    data = read_data(path)
    plan = Plan.read(path) if "release" in data else None
    options: Any = courses.division, courses.epoch, courses.follow_changes
    if plan is not None and not any(chosen) and any(release.times > 1 for release in plan.releases):
        return PanelDesign(Panel(plan, *options))
    if options != ("none", None, False):
        raise InputError(
            "--division, --epoch and --follow-changes are of a panel: a plan with `times` above 1."
        )
    asked: Design = protocol_from(data, str(path)) if plan is None else planned(_once(plan))
    if courses.phases is not None and courses.epsilon is not None:
        return TwoPhase(asked.schema, courses.epsilon, courses.phases)  # type: ignore[arg-type]
    return asked if courses.label is None else _label_design(asked.schema, courses)


def _once(plan: Plan) -> Plan:
    """Return a plan of which only the attributes count, asked once."""
    return replace(plan, releases=tuple(replace(release, times=1) for release in plan.releases))


def _label_design(schema: Schema, courses: Courses) -> Design:
    from sidelight.foundation.errors import invalid, unknown
    from sidelight.labels import LabelSettings
    from sidelight.service.label_design import LabelDesign

    label: Any = courses.label
    if label not in schema:
        raise unknown("attribute", label, schema.names)
    ordered = schema.select([*(name for name in schema.names if name != label), label])
    omega: Any = courses.omega
    if omega != "learnt":
        try:
            omega = float(omega)
        except ValueError:
            raise invalid("omega", "a number or 'learnt'", omega) from None
    chosen: Any = courses
    settings = LabelSettings(chosen.epsilon, chosen.protocol, omega, secret=chosen.secret)
    return LabelDesign(ordered, chosen.model, settings, courses.depth)


@app.command("key")
def make_key(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    folder: Annotated[Path, typer.Option("--folder", help="The folder of the embedded store.")] = HERE,
    database: Database = None,
) -> None:
    """Make an operator's key, shown once; an older one of the same name is worth nothing from then on."""
    need_service("the service")
    from sidelight.service.server import new_key

    say(new_key(_existing(folder, database), name))


@app.command("backup")
def backup(
    output: Annotated[Path, typer.Argument(help="The file to write; one that is there stays.")],
    folder: Annotated[Path, typer.Option("--folder", help="The folder of the embedded store.")] = HERE,
    database: Database = None,
    passphrase: Passphrase = None,
) -> None:
    """Write everything that a service keeps, as of one moment, to one file, while it runs."""
    need_service("the service")
    from sidelight.service.backups import write_backup
    from sidelight.service.server import with_store

    if output.exists():
        raise InputError(f"{output} is there already, and it would be lost; name another file.")
    place, secret = _existing(folder, database), _secret(passphrase)

    def write(path: Path) -> None:
        with_store(place, lambda store: write_backup(store, path, secret))

    write_atomically(output, write, replace=False, private=True)
    say(f"The backup is in {output}{', encrypted' if secret else ', NOT encrypted'}.")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="A backup.")],
    folder: Annotated[Path, typer.Option("--folder", help="An empty folder for the embedded store.")] = HERE,
    database: Database = None,
    passphrase: Passphrase = None,
) -> None:
    """Take a backup over into an empty store: all of it or nothing."""
    need_service("the service")
    from sidelight.service.backups import read_backup
    from sidelight.service.server import store_in, with_store

    place, secret = database or store_in(folder), _secret(passphrase)
    with_store(place, lambda store: read_backup(store, source, secret, int(time.time())))
    say("Restored. Reports that were acknowledged after the backup are lost; those sent again are counted.")


def _document(path: Path) -> bytes:
    from sidelight.service.task import read_task

    content = read_text(path, f"{path} is not UTF-8 text.").encode()
    read_task(content)  # what is wrong with it is said before anything listens
    return content


def _existing(folder: Path, database: str | None) -> str:
    from sidelight.service.server import store_in

    place = database or store_in(folder)
    if database is None and not Path(place).exists():
        raise InputError(f"there is no service in {folder}; `sidelight serve` starts one.")
    return place


def _secret(path: Path | None) -> str | None:
    if path is None:
        return None
    lines = read_text(path, f"{path} is not UTF-8 text.").splitlines()
    if not lines or len(lines[0]) < 12:
        raise InputError(f"the first line of {path} must be a passphrase of at least 12 characters.")
    return lines[0]
