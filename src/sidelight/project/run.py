"""Run a project: audit, plan, simulated collection, estimates, attack; then one page that links them all.

A step is computed only if something that it depends on has changed. Nothing that computes is loaded before
that is known, so that a run of which nothing changed is over at once.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.files import check_not_read, lock
from sidelight.foundation.fingerprint import Digests
from sidelight.project.cache import FOLDER, Cache, Entry, key_of
from sidelight.project.file import Project
from sidelight.project.publishing import Publisher

if TYPE_CHECKING:
    from sidelight.project.bench import Bench

_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"")

_UNSURE = re.compile(
    r"\b(random|now|today|current_\w+|uuid|\w*sample|getenv|concat\w*|format|printf)\b|\|\||\$", re.IGNORECASE
)
_THIS_TIME = f"{os.getpid()} {time.time_ns()}"
_LOCK = "lock"


@dataclass(frozen=True)
class Step:
    """A step of a run.

    Attributes:
        name: what it is called in the cache and in the results.
        title: what it does, in words.
        asks: the parts of a project that it depends on.
        uses: the earlier steps whose facts it rests on.
        takes: the files of earlier steps that it reads; their contents count, not how they came about.
    """

    name: str
    title: str
    asks: tuple[str, ...]
    uses: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()

    def key(self, parts: Mapping[str, Any], keys: Mapping[str, str], done: Mapping[str, Entry]) -> str:
        """Return the fingerprint of all that the step depends on."""
        files = {name: digest for entry in done.values() for name, digest in entry.digests.items()}
        asked = {name: parts[name] for name in self.asks}
        used = [keys[name] for name in self.uses]
        return key_of(self.name, {"uses": used, "takes": [files[name] for name in self.takes], **asked})


STEPS = (
    Step("audit", "auditing the plan as stated", ("data", "policy", "release", "people", "seed")),
    Step("remedies", "looking for ways back under the limits", ("people", "precision", "seed"), ("audit",)),
    Step("plan", "setting the budgets",
         ("data", "policy", "release", "people", "precision", "seed"), ("audit",)),
    Step("collection", "simulating the collection", ("data", "seed"), takes=("plan.toml",)),
    Step("estimates", "estimating from the simulated reports", ("data", "people", "precision"),
         takes=("plan.toml", "simulated.parquet")),
    Step("attack", "attacking the simulated reports", ("data",), ("audit",), ("simulated.parquet",)),
)  # fmt: skip
"""In their order. A step that has nothing to do says so in its facts."""


@dataclass(frozen=True)
class Outcome:
    """What came out of a run.

    Attributes:
        page: the first page of the report.
        facts: everything that was found, by step, as plain data.
        answers: what came out, in words: questions and their answers.
        code: 0 if every limit is certified to be kept by what is planned, or none was set; else 1.
        is_unchanged: whether all of it was known from an earlier run.
    """

    page: Path
    facts: Mapping[str, Any]
    answers: list[list[str]]
    code: int
    is_unchanged: bool


def run_project(
    project: Project, *, fresh: bool = False, force: bool = False, tell: Callable[[str], None] | None = None,
    working: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Outcome:  # fmt: skip
    """Do all steps of a project that are not done yet, and write its report.

    Args:
        project: what to run.
        fresh: compute everything again.
        force: replace files of the output folder that were changed by hand.
        tell: is told a line about every step as it is finished.
        working: makes a context that lasts while something is computed, to show its progress.
    """
    cache, publisher = _places(project)
    digests = cache.digests()
    parts = _parts(project, digests)
    whole = key_of("run", parts)
    publisher.check(force=force)
    known = None if fresh else cache.get("run", whole)
    if known is not None and publisher.has(known.facts["published"]):
        return _outcome(publisher, known, is_unchanged=True)
    cache.keep_digests(digests)
    with _alone(project, cache), working():
        done = _do(project, cache, publisher, parts, fresh=fresh, tell=tell or (lambda _: None))
        finished = _finish(project, cache, publisher, done, whole)
    return _outcome(publisher, finished, is_unchanged=False)


@contextmanager
def _alone(project: Project, cache: Cache) -> Iterator[None]:
    """Let no two runs write into one folder at a time."""
    try:
        handle = (cache.folder / _LOCK).open("wb")
    except OSError as error:
        said = f"{project.output_folder} cannot be written: {error.strerror}"
        raise InputError(f"{project.file}: output: {said}; name another folder.") from None
    with handle:
        try:
            lock(handle)
        except BlockingIOError:
            said = f"another run is writing into {project.output_folder}; wait until it is over."
            raise InputError(f"{project.file}: {said}") from None
        yield


def _places(project: Project) -> tuple[Cache, Publisher]:
    """Return the cache and the output folder, which is made; a file of its name stays and is an error."""
    folder, cache = project.output_folder, Cache(project.output_folder / FOLDER)
    with naming(f"{project.file}: output"):
        check_not_read(folder / "estimates.csv", project.source)  # or the next run would take it for data
    try:
        folder.mkdir(parents=True, exist_ok=True)
        cache.open()
    except OSError as error:
        reason = "it is a file" if folder.exists() else error.strerror
        said = f"{folder} cannot be the folder of the report: {reason}; name another"
        raise InputError(f"{project.file}: output: {said}.") from None
    return cache, Publisher(folder)


def _parts(project: Project, digests: Digests) -> dict[str, Any]:
    """Return all that results depend on, as plain data, by the part of the project it is."""
    found = digests.of(project.source)
    if found is None:
        raise InputError(f"{project.file}: data.path: there is no file {project.source}; mend the path.")
    schema = project.schema_file
    described = None if schema is None else digests.of(str(schema))
    if schema is not None and described is None:
        raise InputError(
            f"{project.file}: data.schema: there is no file {schema}; `sidelight schema` makes one."
        )
    plan = project.plan_file
    planned = None if plan is None else digests.of(str(plan))
    if plan is not None and planned is None:
        raise InputError(f"{project.file}: release.plan: there is no file {plan}; mend the path.")
    data = {
        "content": found, "schema": described, "plan": planned,
        "queried": _queried(project, digests), "reading": project.data.model_dump(by_alias=True),
    }  # fmt: skip
    policy = {
        "secrets": {name: item.model_dump() for name, item in project.secrets.items()},
        "protect": project.protect.model_dump(), "purpose": project.purpose,
    }  # fmt: skip
    return {
        "data": data, "policy": policy, "release": project.release.model_dump(), "seed": project.seed,
        "people": project.wanted.people, "precision": project.wanted.precision,
    }  # fmt: skip


def _queried(project: Project, digests: Digests) -> list[str | None]:
    """Return the digests of files that a SELECT may read besides the table: whatever it has in quotes.

    Rows that depend on chance, on the time or on files whose names are put together are never known again.
    """
    if _UNSURE.search(project.data.sql or ""):
        return [_THIS_TIME]
    quoted = _QUOTED.findall(project.data.sql or "")
    return [digests.of(text) for pair in quoted for text in pair if text]


def _do(
    project: Project, cache: Cache, publisher: Publisher, parts: Mapping[str, Any], *, fresh: bool,
    tell: Callable[[str], None],
) -> dict[str, Entry]:  # fmt: skip
    """Do every step that is not done, publish what it made, and return all of them."""
    keys: dict[str, str] = {}
    done: dict[str, Entry] = {}
    bench: list[Bench] = []
    for step in STEPS:
        keys[step.name] = step.key(parts, keys, done)
        entry = None if fresh else cache.get(step.name, keys[step.name])
        told = "unchanged"
        if entry is None:
            bench = bench or [_bench(project)]
            entry = _computed(step, bench[0], done, cache, keys[step.name], parts)
            told = f"{entry.facts['seconds']:.1f} s"
        done[step.name] = entry
        publisher.put(entry)
        publisher.write_index(_page(project, done, publisher.published))
        tell(f"{step.title}: {told}")
    return done


def _bench(project: Project) -> Bench:
    from sidelight.project.bench import Bench

    return Bench(project)


def _computed(
    step: Step, bench: Bench, done: Mapping[str, Entry], cache: Cache, key: str, parts: Mapping[str, Any]
) -> Entry:
    """Compute a step and keep it, unless the table is another by then."""
    from sidelight.project.steps import COMPUTE

    started = time.perf_counter()
    with cache.workspace() as temporary:
        place = Path(temporary)
        facts = COMPUTE[step.name](bench, done, place)
        if _parts(bench.project, cache.digests()) != parts:
            read = f"{bench.project.source}, or what else is read,"
            raise InputError(f"{bench.project.file}: {read} changed meanwhile; run again once it is whole.")
        facts["seconds"] = round(time.perf_counter() - started, 3)
        return cache.put(step.name, key, facts, {path.name: path for path in sorted(place.iterdir())})


def _page(project: Project, done: Mapping[str, Entry], files: Collection[str]) -> str:
    from sidelight.project.page import index_html

    return index_html(project, {step.name: step.title for step in STEPS}, _facts(done), files)


def _facts(done: Mapping[str, Entry]) -> dict[str, Any]:
    return {name: dict(entry.facts) for name, entry in done.items()}


def _finish(
    project: Project, cache: Cache, publisher: Publisher, done: Mapping[str, Entry], whole: str
) -> Entry:
    """Write what links everything, and keep what the next run needs to know that nothing changed."""
    from sidelight.project.summary import answers_of, code_of

    facts, answers = _facts(done), answers_of(_facts(done))
    results = {"project": project.file.name, "answers": answers, "steps": facts}
    publisher.write("results.json", json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    publisher.tidy()
    kept = {"facts": facts, "answers": answers, "code": code_of(facts), "published": publisher.published}
    return cache.put("run", whole, kept, {})


def _outcome(publisher: Publisher, entry: Entry, *, is_unchanged: bool) -> Outcome:
    facts = entry.facts
    return Outcome(publisher.index, facts["facts"], facts["answers"], facts["code"], is_unchanged)
