"""What commands take from the project file, where the command line does not say otherwise.

One place for all of them: typer is handed the file's settings as defaults (its `default_map`), so that an
option that is written wins; then `settled` takes back what the options that were written make void.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from inspect import Parameter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import PROJECT_FILE
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.plan import Plan
    from sidelight.project import Project

Given = dict[str, Any]
_PROJECT, _IGNORED = "sidelight.project", "sidelight.no_project"
_AT_DELTA = (None, "population", "table", "tree")
_READING = (
    "data", "schema", "sql", "encoding", "na", "drop", "column", "bins", "max_values", "missing"
)  # fmt: skip
_RULES = ("bins", "max_values", "missing")
_VOIDED: dict[str, dict[str, tuple[str, ...]]] = {
    "audit": {
        **dict.fromkeys(("plan", "plans"), ("mechanism", "epsilon", *_RULES)),
        "epsilon": ("plan",), "mechanism": ("plan",)
    },
    "diff": {"before": _RULES}, "check": {"plan": _RULES},
    "calibrate": {
        "plan": ("mechanism", *_RULES), "constraint": ("delta", "decide_by", "seed"),
        "method": ("delta", "decide_by", "seed"),
    },
    "collect": dict.fromkeys(
        ("protocol", "parameters", "epsilon", "mechanism", "group", "prior", "share"), ("plan",)
    ),
    "advise": dict.fromkeys(("first", "attributes", "values"), _READING),
    "estimate": {"follow": ("reports", "truth")},
}  # fmt: skip
"""By command, what an option makes void of a project's settings: they exclude each other, or are about
something else."""


def _ignore(context: typer.Context, value: bool) -> bool:
    context.meta[_IGNORED] = value
    return value


def _read(context: typer.Context, value: Path | None) -> Path | None:
    """Hand the settings of the project file, if there is one, to typer as defaults."""
    if context.resilient_parsing or context.meta.get(_IGNORED):
        return value
    if value is None and not Path(PROJECT_FILE).is_file():
        return None
    from sidelight.project import Project

    project = Project.read(Path(PROJECT_FILE) if value is None else value)
    context.meta[_PROJECT] = project
    known = {parameter.name for parameter in context.command.params}
    settings = _settings(str(context.info_name), project)
    context.default_map = {
        name: part for name, part in settings.items() if name in known and part is not None
    }
    return value


PROJECT_PARAMETERS = [
    Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
    Parameter(
        "no_project", Parameter.KEYWORD_ONLY, default=False,
        annotation=Annotated[
            bool,
            typer.Option("--no-project", is_eager=True, callback=_ignore, help="Read no project file."),
        ],
    ),
    Parameter(
        "project", Parameter.KEYWORD_ONLY, default=None,
        annotation=Annotated[
            Path | None,
            typer.Option(
                "--project", is_eager=True, callback=_read,
                help=f"Take what no option says from this project file [{PROJECT_FILE}, if it is there].",
            ),
        ],
    ),
]  # fmt: skip
"""The options by which a command is told of a project file."""


def call_with_project(given: Given, call: Callable[[Given], None], *, cached: bool) -> None:
    """Call a command with its arguments, settled with what the project file says."""
    context: typer.Context = given.pop("context")
    del given["project"], given["no_project"]
    project: Project | None = context.meta.get(_PROJECT)
    if project is None:
        call(given)
        return
    taken = {name for name in given if _source(context, name) == "DEFAULT_MAP"}
    written = {name for name in given if _source(context, name) in ("COMMANDLINE", "ENVIRONMENT")}
    command = str(context.info_name)
    given = _settled(command, project, given, taken, written)
    shown = [name.replace("_", "-") for name in given if name in taken]
    if shown:
        say(f"From {project.file}: {', '.join(shown)}.", err=True)

    def finish() -> None:
        with _planned(command, project, given, written) as plan:
            call(given | plan)

    if not cached:
        finish()
        return
    from sidelight.cli.remembered import remembered

    remembered(command, project, given, finish)


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    return "" if source is None else source.name


def _settings(command: str, project: Project) -> Given:
    """Return what a project says about the options of a command, by their names."""
    data = project.data
    reading = {
        "data": project.source, "schema": project.schema_file, "sql": data.sql,
        "encoding": None if data.encoding == "utf-8" else data.encoding,
        "na": data.na, "drop": data.drop or None, "column": data.columns, "bins": data.bins,
        "max_values": data.max_values, "missing": data.missing,
    }  # fmt: skip
    wanted = {"people": project.wanted.people, "within": project.wanted.precision}
    if command in ("audit", "calibrate"):
        return reading | _policy(command, project) | wanted
    if command == "learn":
        return reading | {"seed": project.seed}
    if command == "advise":
        return reading | wanted
    if command in ("attack", "estimate"):
        return _about_reports(command, project)
    plan = project.output_folder / "plan.toml"
    made = {"plan": plan if plan.is_file() else None}
    if command == "collect":
        return reading | made
    if command in ("show", "check", "diff"):  # what a plan says of its attributes needs no rules
        named = {"secret": list(project.secrets) or None, "people": project.wanted.people}
        return {name: part for name, part in reading.items() if name not in _RULES} | named | made
    return reading


def _policy(command: str, project: Project) -> Given:
    """Return secrets, limits, who decides and, where one name says it, the mechanism."""
    release, delta = project.release, project.protect.delta
    at_delta = command == "audit" or project.protect.decide_by in _AT_DELTA
    simple = release.plan is None and not release.mechanisms and not isinstance(release.budgets, dict)
    has_auto = release.mechanism == "auto"
    budget = release.epsilon if isinstance(release.budgets, str) else release.budgets
    return {
        "secret": [_with_limit(name, project) for name in project.secrets] or None,
        "limit": None if project.secrets else project.limit,
        "decide_by": project.protect.decide_by,
        "delta": delta if at_delta else None,
        "seed": project.seed if at_delta and delta is not None else None,
        "draws": project.protect.draws if command == "audit" else None,
        "adversary": "guess" if command == "audit" and project.protect.adversary == "guess" else None,
        "mechanism": release.mechanism if simple and not (has_auto and command == "audit") else None,
        "epsilon": budget if simple and not has_auto else None,
    }  # fmt: skip


def _with_limit(name: str, project: Project) -> str:
    limit = project.limits.get(name)
    if limit is None and "=" in name:  # or what follows the last = could be read as a limit
        limit = math.inf
    return name if limit is None else f"{name}={limit!r}"


def _about_reports(command: str, project: Project) -> Given:
    """Return what a command on reports takes: those that the last run simulated, and their true records."""
    made = sorted(
        project.output_folder.glob(".sidelight-cache/collection-*/simulated.parquet"),
        key=lambda path: path.parent.stat().st_mtime_ns,  # when they were last used, not made
    )
    latest = made[-1] if made else None
    settings: Given = {"truth": project.source, "encoding": project.data.encoding}
    if command == "estimate":
        return settings | {"truth": [project.source], "reports": None if latest is None else [str(latest)]}
    first = next(iter(project.secrets), None)
    return settings | {"data": latest, "secret": first, "schema": project.schema_file}


def _settled(command: str, project: Project, given: Given, taken: set[str], written: set[str]) -> Given:
    """Return the arguments without what the options that were written make void."""
    if command == "audit" and "data" in written and str(given["data"]).endswith(".toml"):
        # a table is at hand, so what is named are plans
        given = given | {"data": project.source, "plans": [Path(given["data"]), *(given["plans"] or [])]}
        written = written - {"data"} | {"plans"}
        taken.add("data")
    voided = _VOIDED.get(command, {})
    void = {part for name in written for part in voided.get(name, ())}
    if command == "calibrate" and given["decide_by"] not in _AT_DELTA:
        void |= {"delta", "seed"}
    if command == "audit" and given["delta"] is None:
        void |= {"seed"}
    if command == "audit" and not (given["remedies"] or given["remedy"]):
        void |= {"people", "within"}
    if command == "estimate" and "reports" not in taken:
        void.add("truth")  # only of simulated reports are the true records known
    if command == "attack" and not _is_reports(given["data"]):
        void |= {"truth", "schema"}
    taken -= void
    given = given | {name: _unsaid(name) for name in void & given.keys() - written}
    if command in ("audit", "calibrate"):
        given["secret"] = _secrets(project, given, taken, written)
    return given


def _unsaid(name: str) -> Any:
    """Return what an option is where nobody has said anything."""
    return "utf-8" if name == "encoding" else None


def _is_reports(data: str) -> bool:
    from sidelight.attacks.released import is_reports_file

    return is_reports_file(data)


def _secrets(project: Project, given: Given, taken: set[str], written: set[str]) -> list[str] | None:
    """Return the secrets; a limit that is written wins over the project's, which is for those without."""
    if given["secret"] is None:
        return None
    if "limit" in written:
        return list(project.secrets) if "secret" in taken else given["secret"]
    free = set(given.get("not_secret") or ())
    if "secret" in taken:
        return [_with_limit(name, project) for name in project.secrets if name not in free] or None
    return [_with_limit(name, project) if name in project.secrets else name for name in given["secret"]]


@contextmanager
def _planned(command: str, project: Project, given: Given, written: set[str]) -> Iterator[Given]:
    """Give the plan that the project states, as a file that lasts for the call, if no options can say it."""
    if command == "collect" and not written & {"plan", "protocol", "parameters", "epsilon", "mechanism"}:
        if given["plan"] is None:
            raise InputError(
                f"{project.file} has no plan yet; `sidelight run` finds one. Or name --plan or --protocol."
            )
        _warn_of_other_limits(project, Path(given["plan"]))
        yield {}
        return
    is_said = given.get("plan") is not None or given.get("plans") or given.get("mechanism") is not None
    if command not in ("audit", "calibrate") or is_said or "epsilon" in written:
        yield {}
        return
    with TemporaryDirectory(prefix="sidelight-") as folder:
        plan = _stated_plan(project, given).write(Path(folder) / "stated.toml")
        yield {"plan": plan} | dict.fromkeys((*_RULES, "kinds"))  # by which the plan was made


def _warn_of_other_limits(project: Project, path: Path) -> None:
    """Say that a plan was made for other limits than the project has by now."""
    from sidelight.plan import Plan

    plan = Plan.read(path)
    limits = {name: limit for name, limit in project.limits.items() if limit < math.inf}
    others = [name for name, limit in limits.items() if plan.limit_of(name) != limit]
    if others:
        said = f"{path} was made for another limit of {', '.join(others[:5])} than {project.file} has now"
        say(f"warning: {said}; `sidelight run` makes it anew.", err=True)


def _stated_plan(project: Project, given: Given) -> Plan:
    """Return the plan that the project states for the table at hand, read as the options say."""
    from sidelight.cli.common import read_table
    from sidelight.cli.options import Reading
    from sidelight.project.bench import Bench

    own = {part.name: given[part.name] for part in fields(Reading) if part.name in given}
    return Bench(project, read_table(given["data"], Reading(**own))).stated
