"""Run studies: finished ones are taken from the cache, the rest computed, several processes at a time.

`python -m sidelight.studies.runner STORE STUDY... [--quick]` computes the works behind studies. That is what
each process does: one that is killed takes no other with it, and what has ended is kept. Short works share a
process, since to start one takes longer than most of them; if it fails, each has one of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from sidelight.foundation.errors import InputError, SidelightError, check_whole, invalid
from sidelight.studies.cache import check_folder, clean_after_run, compute, finished, holding, key_of
from sidelight.studies.outputs import Saved, check_replaceable, copy_folder
from sidelight.studies.register import find_study, sharing
from sidelight.studies.study import Study, Work

_POLL = 0.05
_SHORT = 0.1
"""So many minutes are few enough to share a process."""
_WATCH = 0.5
_SET = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")}
_SET["PYTHONSAFEPATH"] = "1"
"""For the processes: one thread of linear algebra, and no module from the folder we happen to work in."""
State = Literal["computed", "cached", "failed"]
_Failure = tuple[str, bool]
"""Why a process failed, and whether that is a fault of ours."""
_LOST: _Failure = ("its outputs are not there; did the package or a table change meanwhile?", True)
_REFUSED = 2
"""How a process ends that met bad input or a full disk."""


@dataclass(frozen=True)
class Outcome:
    """What became of one study in a run."""

    study: Study  # the study
    state: State  # "computed" now, "cached" from before, or "failed"
    saved: Saved | None  # its result; None if it failed
    error: str = ""  # why it failed
    is_fault: bool = False  # whether that is a fault of ours, and not bad input or a full disk


@dataclass(frozen=True)
class Settings:
    """How to run."""

    store: Path  # the folder of finished works
    out: Path | None = None  # where each study's outputs are copied to, a folder for each; None for nowhere
    quick: bool = False  # whether to take fewer points, people and repetitions
    fresh: bool = False  # whether to compute again what is finished
    workers: int = 1  # how many processes work at a time

    def __post_init__(self) -> None:
        check_whole("workers", self.workers, at_least=1)
        for name, folder in (("store", self.store), ("out", self.out)):
            if folder is not None and folder.exists() and not folder.is_dir():
                raise invalid(name, "a folder", str(folder))


def run_studies(studies: Sequence[Study], settings: Settings) -> Iterator[Outcome]:
    """Yield the outcome of each study as soon as it is known, finished ones first.

    Closing the iterator, or an interruption, ends the running processes; whatever had ended is kept. A run
    that computed something also removes what has not been used for long, see `cache`.
    """
    if settings.out is not None:
        check_folder("out", settings.out)
        for study in studies:
            check_replaceable(settings.out / study.name)
    by_work: dict[Work, list[Study]] = {}
    for study in studies:
        by_work.setdefault(study.work, []).append(study)
    waiting = []
    with holding(settings.store):
        for work in by_work:
            done = None if settings.fresh else finished(settings.store, work, settings.quick)
            if done is None:
                waiting.append(work)
            else:
                yield from _outcomes(by_work[work], settings, "cached", done)
        if waiting:
            check_folder("store", settings.store)
        # so that no long one is left to run alone at the end
        waiting.sort(key=lambda work: -work.minutes)
        for work, failure in _in_processes(waiting, settings):
            done = None if failure else finished(settings.store, work, settings.quick)
            if done is None:
                yield from (Outcome(study, "failed", None, *(failure or _LOST)) for study in by_work[work])
            else:
                yield from _outcomes(by_work[work], settings, "computed", done)
    if waiting:
        clean_after_run(settings.store)


def _outcomes(
    studies: Sequence[Study], settings: Settings, state: State, done: dict[str, Saved]
) -> Iterator[Outcome]:
    """Yield the outcomes of studies that share a work, their outputs copied to where they were asked for."""
    folder = settings.store / key_of(studies[0].work, settings.quick)
    for study in studies:
        if settings.out is not None:
            copy_folder(folder / study.name, settings.out / study.name)
        yield Outcome(study, state, done[study.name])


def _in_processes(works: Sequence[Work], settings: Settings) -> Iterator[tuple[Work, _Failure | None]]:
    """Compute works in processes, so many at a time, each on one thread of linear algebra."""
    waiting = _batches(works, settings.workers)
    running: dict[tuple[Work, ...], tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < settings.workers:
                batch = waiting.pop(0)
                running[batch] = _start(batch, settings)
            for batch, (process, words) in list(running.items()):
                if process.poll() is not None:
                    del running[batch]
                    failure = _last_words(process, words)
                    if failure and len(batch) > 1:
                        waiting += [(work,) for work in batch]
                    else:
                        yield from ((work, failure) for work in batch)
            time.sleep(_POLL)
    finally:
        for process, words in running.values():
            _end(process.pid)
            process.wait()
            words.close()


def _batches(works: Sequence[Work], count: int) -> list[tuple[Work, ...]]:
    """Return what each process computes: a work, or last, dealt out to so many of them, the short ones."""
    short = [work for work in works if work.minutes <= _SHORT]
    shared = [tuple(short[place::count]) for place in range(min(count, len(short)))]
    return [*((work,) for work in works if work.minutes > _SHORT), *shared]


def _start(batch: Sequence[Work], settings: Settings) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    words = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
    names = [sharing(work)[0].name for work in batch]
    command = [sys.executable, "-P", "-m", "sidelight.studies.runner", str(settings.store), *names]
    command += ["--quick"] if settings.quick else []
    process = subprocess.Popen(  # noqa: S603 - our own module, arguments of our own
        command, env=os.environ | _SET, process_group=0, stdin=subprocess.DEVNULL, stdout=words, stderr=words
    )
    return process, words


def _end(group: int) -> None:
    """End a process and those that it started: they are one group."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _end_with(parent: int) -> None:
    """Wait until the parent has gone, then end this process and those that it started."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    _end(os.getpgrp())


def _last_words(process: subprocess.Popen[bytes], words: IO[bytes]) -> _Failure | None:
    with words:
        words.seek(0)
        lines = words.read().decode(errors="replace").strip().splitlines()
    if process.returncode == 0:
        return None
    said = lines[-1] if lines else f"its process ended with status {process.returncode}"
    return said, process.returncode != _REFUSED


def main(arguments: Sequence[str]) -> int:
    """Compute the works behind the studies that the command line names."""
    names = [argument for argument in arguments if argument != "--quick"]
    if len(names) < 2:
        raise InputError("name the folder to keep results in and a study: STORE STUDY... [--quick].")
    if os.getpgrp() == os.getpid():
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for name in names[1:]:
        compute(find_study(name).work, Path(names[0]), quick="--quick" in arguments)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except SidelightError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(_REFUSED) from None
