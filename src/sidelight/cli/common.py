"""What the commands share: checks before long work, opening a table, progress, showing a result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sidelight as sl
from sidelight.cli.options import Json, Names, Reading, ReportFile
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole
from sidelight.foundation.files import check_not_read, check_overwrite, json_plain
from sidelight.foundation.modules import require
from sidelight.foundation.progress import progress_bars
from sidelight.foundation.terminal import say, say_json

PAGE = (".html", ".htm")
SETTINGS = (".toml", ".json")
"""Suffixes of the files that people keep: plans, protocols, parameters."""


@dataclass(frozen=True)
class Shown:
    """How a result is shown."""

    report: ReportFile = None
    json: Json = False

    def __post_init__(self) -> None:
        """Refuse before the work a report that could not be written after it."""
        check_writable(self.report, PAGE)


def need_service(purpose: str) -> None:
    """Say which extra is missing, before the work; a machine may have some of its packages from elsewhere."""
    for module in ("fastapi", "uvicorn", "msgspec", "alembic", "prometheus_client", "asyncpg"):
        require(module, "service", purpose)


def progress(*, quiet: bool) -> Any:
    """Show bars for the work inside, unless it must be quiet."""
    return nullcontext() if quiet else progress_bars()


def echo_json(value: object) -> None:
    """Print plain data as JSON that every program reads: an infinite number is the string "infinity"."""
    say_json(json.dumps(json_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def show(result: Any, shown: Shown, printer: Callable[[], None], said: Iterable[str] = ()) -> None:
    """Write the report that was asked for, print the result as JSON or tables, and say where files are."""
    written = sl.write_report(result, shown.report) if shown.report else None
    if shown.json:
        say_json(result.to_json())
        return
    printer()
    for line in said:
        say(line)
    if written:
        say(f"The report is in {written}.")


def _named_numbers(options: list[str]) -> tuple[list[str], dict[str, float]]:
    """Split options of the form name or name=number; a name may have an = itself."""
    names: list[str] = []
    numbers: dict[str, float] = {}
    for option in options:
        name, _, text = option.rpartition("=")
        number = None
        with suppress(ValueError):
            number = float(text) if name else None
        names.append(option if number is None else name)
        if number is None:
            continue
        if name in numbers and numbers[name] != number:
            raise InputError(f"{name!r} is given two numbers, {numbers[name]:g} and {number:g}; choose one.")
        numbers[name] = number
    return names, numbers


def numbers_only(option: str, form: str, texts: list[str]) -> dict[str, float]:
    """Read options that must have the form name=number."""
    names, numbers = _named_numbers(texts)
    for name in names:
        if name not in numbers:
            raise InputError(f"{option} must be {form}, got {name!r}.")
    return numbers


def secrets_with_limits(options: Names, limit: float | None) -> tuple[list[str], dict[str, float]]:
    """Split options of the form secret or secret=limit; refuse before the work limits no plan may have."""
    secrets, limits = _named_numbers(options or [])
    everyone = {} if limit is None else {"limit": limit}
    for name, value in {**everyone, **{f"limit of {name}": limits[name] for name in limits}}.items():
        check_number(name, value, at_least=0, infinite=True)
    return secrets, limits


def check_counts(*, smoothing: float, **counts: int) -> None:
    """Refuse before the work a count below 0: of evenly spread records, or of anything whole."""
    check_number("smoothing", smoothing, at_least=0)
    for name, count in counts.items():
        check_whole(name, count, at_least=0)


def check_writable(
    path: Path | None, suffixes: tuple[str, ...], *, sources: Sequence[str | Path | None] = (),
    force: bool | None = None,
) -> None:  # fmt: skip
    """Refuse, before the work, what could not or must not be written after it.

    What is read, `sources`, is never written over. `force` is None where there is no such option.
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path} must end in {' or '.join(suffixes)}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: its folder does not exist, or it is a folder itself.")
    check_not_read(path, *sources)
    fix = "name another file" + ("" if force is None else ", or say --force")
    check_overwrite(path, force=bool(force), fix=fix)


def first_given(options: Mapping[str, object]) -> str | None:
    """Return the first option that somebody wrote, or None."""
    return next((name for name, value in options.items() if value is not None), None)


def refuse_several(options: Mapping[str, object]) -> None:
    """Refuse options that exclude each other."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other; leave one out.")


def refuse_both(plan: sl.Plan | None, options: Mapping[str, object]) -> None:
    """Refuse options that a plan already answers."""
    name = first_given(options)
    if plan is not None and name:
        raise InputError(f"{name} and --plan exclude each other; change the plan, or leave one out.")


def read_table(
    data: str, reading: Reading, plan: sl.Plan | None = None, named: Sequence[str] = (), *,
    numbered: Sequence[str] = (), giver: str = "plan",
) -> sl.Table:  # fmt: skip
    """Open the table; columns that the plan releases are coded as the plan says.

    Other options name the columns `named`, and may have meant those in `numbered` as name=number. In messages
    the plan is called `giver`.
    """
    source, rules = _opened(data, reading)
    drop, required = reading.drop or [], list(named)
    if plan is not None or any(set(name) & set(",=") for name in (*drop, *named)):
        names = partial(sl.sources.column_names, encoding=reading.encoding, sql=reading.sql)
        columns = names(source) if isinstance(source, str) else list(source.columns)
        check_written(columns, [*drop, *named], numbered)
        _check_planned(data, plan, columns, reading, giver)
    dictionary = rules.pop("schema")
    if plan is None:
        return sl.read(source, drop=drop, require=required, schema=dictionary, **rules)
    others = True if dictionary is None else dictionary
    table = sl.read(source, drop=drop, schema=plan.schema, rest=others, require=required, **rules)
    _refuse_rules(table, plan, reading, giver)
    return table


def check_written(columns: Sequence[str], names: Iterable[str], numbered: Sequence[str] = ()) -> None:
    """Explain names that are lists of columns, or a column with a limit that is not a number."""
    for name in names:
        parts = [part.strip() for part in name.split(",")]
        if name not in columns and len(parts) > 1 and set(parts) & set(columns):
            raise InputError(f"there is no column {name!r}; to name several columns, repeat the option.")
        column, _, text = name.rpartition("=")
        if name not in columns and name in numbered and column in columns:
            raise InputError(f"the limit of {column!r} must be a number, got {text!r}.")


def _check_planned(
    data: str, plan: sl.Plan | None, columns: Sequence[str], reading: Reading, giver: str
) -> None:
    """Refuse a plan that releases a column that is missing, left out, or described otherwise."""
    for name in plan.names if plan else ():
        reasons = (
            (name in reading.stated, " and says what its values are, so --kind cannot; change the "
             f"{giver}, or leave --kind out."),
            (name not in columns, f", which is not a column of {data}; its columns are "
             f"{', '.join(columns[:20])}."),
            (reading.column and name not in reading.column, ", which is not among the --column options; "
             f"name it too, or change the {giver}."),
            (name in (reading.drop or ()), f", so --drop {name} cannot leave it out; change the {giver}, or "
             "keep the column."),
        )  # fmt: skip
        for is_so, reason in reasons:
            if is_so:
                raise InputError(f"the {giver} releases {name!r}{reason}")


def _refuse_rules(table: sl.Table, plan: sl.Plan, reading: Reading, giver: str) -> None:
    """Refuse rules for columns outside the plan if there are none."""
    rules = {"--bins": reading.bins, "--max-values": reading.max_values, "--missing": reading.missing}
    option = first_given(rules)
    if option and all(name in plan.names for name in table.schema.names):
        raise InputError(
            f"{option} {rules[option]} would change nothing: the {giver} releases every attribute and says "
            f"which values each has. Change the {giver}, or leave the option out."
        )


def _opened(data: str, reading: Reading) -> tuple[Any, dict[str, Any]]:
    """Return what an engine reads, and how it is read."""
    if check_choice("engine", reading.engine, ("local", "spark")) == "local":
        if reading.master is not None:
            raise InputError(
                f"--master {reading.master} is for --engine spark; add it, or leave the master out."
            )
        return data, reading.rules
    from sidelight.sources.session import open_frame

    if reading.sql is not None:
        raise InputError("--sql is for --engine local; leave one out.")
    others = {name: rule for name, rule in reading.rules.items() if name not in ("encoding", "sql")}
    return open_frame(data, reading.master, reading.encoding), others | {"label": data}
