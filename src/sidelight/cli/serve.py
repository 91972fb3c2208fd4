"""The commands `serve` and `service`: run a collection service, and look after it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli.common import check_writable
from sidelight.cli.options import Force, flag, grouped
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import read_text, write_atomically
from sidelight.foundation.modules import require
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
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
    _need_extra()
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
    rounds: int | None = flag(None, "How often it is asked [1; 2 for two phases].")
    smallest_crowd: int = flag(100, "Figures of fewer people are shown to nobody.")
    retention_days: int | None = flag(None, "Days after publication until sums and ids are dropped.")
    most_reports: int | None = flag(None, "How many reports a round takes.")
    tokens: bool = flag(False, "Each report needs a one-time token.", "--tokens")
    keep_reports: bool = flag(False, "Keep the reports themselves.", "--keep-reports")
    phases: str | None = flag(None, "Ask in two phases, 'corr-rr' or 'cond-rr', about the same attributes.")
    epsilon: float | None = flag(None, "With --phases: the budget of a record.")


DesignFile = Annotated[Path, typer.Argument(help="A plan or a protocol (.toml or .json).")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Write the task to this .json file.")]


@app.command("task")
@grouped(project=False)
def make_task(*, design: DesignFile, output: Output, terms: Terms, force: Force = False) -> None:
    """Write a task from a plan or a protocol: what is posted to a service."""
    check_writable(output, (".json",), sources=(design,), force=force)
    made = _task(design, terms)
    write_atomically(output, lambda place: place.write_bytes(made.document), replace=force)
    say(f"The task {made.id} is in {output}; each person spends at most {made.epsilon:g}.")


def _task(design: Path, terms: Terms) -> Task:
    from sidelight.foundation.strict import read_data
    from sidelight.plan import Plan
    from sidelight.protocols.direct import planned
    from sidelight.protocols.files import protocol_from
    from sidelight.protocols.protocol import Design
    from sidelight.protocols.two_phase import TwoPhase
    from sidelight.service.task import Task
    from sidelight.service.task import Terms as Conditions

    if not terms.purpose or not terms.contact:
        raise InputError("a task needs --purpose and --contact: everyone who is asked reads them.")
    data = read_data(design)
    asked: Design = planned(Plan.read(design)) if "release" in data else protocol_from(data, str(design))
    conditions = Conditions(
        terms.smallest_crowd, terms.retention_days, terms.most_reports, terms.tokens, terms.keep_reports
    )
    if (terms.phases is None) != (terms.epsilon is None):
        raise InputError("--phases and --epsilon go together; give both, or leave both out.")
    if terms.phases is not None and terms.epsilon is not None:
        asked = TwoPhase(asked.schema, terms.epsilon, terms.phases)  # type: ignore[arg-type]
    rounds = terms.rounds or (1 if asked.two_phase is None else 2)
    return Task(asked, terms.purpose, terms.contact, rounds, conditions)


@app.command("key")
def make_key(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    folder: Annotated[Path, typer.Option("--folder", help="The folder of the embedded store.")] = HERE,
    database: Database = None,
) -> None:
    """Make an operator's key, shown once; an older one of the same name is worth nothing from then on."""
    _need_extra()
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
    _need_extra()
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
    _need_extra()
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


def _need_extra() -> None:
    for module in ("fastapi", "uvicorn", "msgspec", "alembic", "prometheus_client", "asyncpg"):
        require(module, "service", "the service")


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
