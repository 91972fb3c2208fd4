"""`estimate --follow`: estimates from a folder of report files that grows, and from checkpoints."""

from __future__ import annotations

import json as writer
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sidelight as sl
from sidelight.cli.common import Shown, check_writable, progress
from sidelight.cli.options import flag
from sidelight.foundation.errors import InputError, check_number
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.estimation.estimates import Comparison
    from sidelight.transport.folder import Scan

_EVERY = 2.0
_REFRESH = 5.0
"""While many files wait, estimates are shown after so many seconds."""


@dataclass(frozen=True)
class State:
    """Where the sums of reports are, and how long to wait for more."""

    follow: Path | None = flag(
        None, "Take the report files of this folder, and those that come, as they come."
    )
    checkpoint: Path | None = flag(
        None, "With --follow: keep the state in this file [FOLDER/checkpoint.json]."
    )
    expect: list[Path] | None = flag(
        None, "With --follow: take reports of this protocol, plan or parameter file only; repeatable."
    )
    once: bool = flag(False, "With --follow: take what is there, and stop.", "--once")
    idle: float | None = flag(None, "With --follow: stop after so many seconds without news.")
    every: float | None = flag(None, "With --follow: look again after so many seconds [2].")

    def is_asked_for(self, files: list[Path], learn: Path | None) -> bool:
        """Whether estimates are to come from a followed folder or checkpoints, not from report files."""
        if self.follow is not None and files:
            raise InputError(f"--follow {self.follow} and the file {files[0]} exclude each other.")
        if self.follow is None and not files:
            raise InputError("name report files, or a folder with --follow.")
        folder = next((path for path in files if path.is_dir()), None)
        if folder is not None:
            raise InputError(f"{folder} is a folder; name it with --follow, or name its report files.")
        checkpoints = [path for path in files if path.suffix.lower() == ".json"]
        if checkpoints and len(checkpoints) < len(files):
            raise InputError(f"{checkpoints[0]} is a checkpoint, other files are not; name one kind.")
        asked = self.follow is not None or bool(checkpoints)
        if asked and learn:
            raise InputError("--learn needs the reports themselves, not their sums; name the report files.")
        waits = {"--once": self.once, "--idle": self.idle is not None, "--every": self.every is not None}
        keeps = {"--checkpoint": self.checkpoint is not None, "--expect": bool(self.expect)}
        for option, given in (waits | ({} if checkpoints else keeps)).items():
            if given and self.follow is None:
                raise InputError(f"{option} goes with --follow; name the folder, or leave it out.")
        return asked

    def is_over(self, news: float) -> bool:
        """Whether it is time to stop, with the last news at that time."""
        return self.once or (self.idle is not None and time.monotonic() - news >= self.idle)


@dataclass(frozen=True)
class Showing:
    """How estimates are made and shown."""

    settings: dict[str, Any]  # of `estimate`
    finish: Callable[[sl.Estimates], sl.Estimates | Comparison]  # sets what is known beside estimates
    shown: Shown  # the HTML file to write at the end; print JSON, one line for each update
    output: Path | None  # the file of the estimates to write at the end
    force: bool  # whether it may replace a file


def estimate_from_state(state: State, files: list[Path], showing: Showing) -> None:
    """Estimate from a followed folder, or from checkpoints."""
    expected, folder = _expected(state.expect or []), state.follow
    if folder is None:
        _from_checkpoints(files, state.checkpoint, expected, showing)
        return
    every = _EVERY if state.every is None else check_number("every", state.every, above=0)
    if state.idle is not None:
        check_number("idle", state.idle, at_least=0)
    with stopping() as stop, sl.transport.Follower(folder, state.checkpoint, expected=expected) as follower:
        news = None
        while True:
            with progress(quiet=showing.shown.json):
                scan = follower.scan(_REFRESH, stop.is_set)
            _tell(scan)
            if scan.is_news or news is None:
                news = time.monotonic()
                _update(follower, scan, showing)
            if stop.is_set() or (not scan.left and state.is_over(news)):
                break
            if not scan.left:
                stop.wait(every)
        follower.write()  # what came since the last checkpoint would be lost
        whole = follower.aggregator
        _report(whole, showing)
        say(f"{follower.path} holds {len(whole.batches)} batches, {whole.people} reports.", err=True)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Let a first interruption end the work between two batches; a second one ends it at once."""
    stop = threading.Event()
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: Any) -> None:  # noqa: ARG001 - a handler's arguments are given
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    for number in former:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _tell(scan: Scan) -> None:
    """Say on standard error what was not counted, and why."""
    for _, reason in scan.refused:
        say(f"refused: {reason}", err=True)
    for name in scan.repeated:
        say(f"{name} holds a batch that is counted already; not counted again.", err=True)


def _update(follower: sl.transport.Follower, scan: Scan, showing: Showing) -> None:
    estimates = _estimated(follower.aggregator, showing)
    whole, refused = follower.aggregator, follower.refused
    if showing.shown.json:
        state = {
            "batches": len(whole.batches), "people": whole.people, "left": scan.left,
            "refused": [{"file": name, "reason": reason} for name, reason in refused.items()],
            "found": None if isinstance(estimates, str) else writer.loads(estimates.to_json()),
        }  # fmt: skip
        say_json(writer.dumps(state, allow_nan=False))
        return
    if isinstance(estimates, str):
        say(f"No estimates yet: {estimates}")
    else:
        sl.report.print_estimates(estimates)
    left = f", {scan.left} files wait" if scan.left else ""
    say(f"- {len(whole.batches)} batches, {whole.people} reports, {len(refused)} files refused{left}.")


def _estimated(aggregator: sl.transport.Aggregator, showing: Showing) -> sl.Estimates | Comparison | str:
    """Return the estimates, or why there are none yet."""
    if not aggregator.people:
        return "there are no reports to estimate from."
    try:
        estimates = aggregator.estimate(**showing.settings)
    except InputError as error:
        if _is_early(aggregator):
            return str(error)
        raise
    return showing.finish(estimates)


def _is_early(aggregator: sl.transport.Aggregator) -> bool:
    """Whether estimates may yet come: the first phase, or someone who reports an attribute, is missing."""
    for part in aggregator.sums:
        if part.protocol.first_phase is None:
            return any(item.reports == 0 for item in part.parts)
    return True


def _report(aggregator: sl.transport.Aggregator, showing: Showing) -> None:
    """Write the files that were asked for, if there are estimates."""
    estimates = _estimated(aggregator, showing) if showing.shown.report or showing.output else ""
    if isinstance(estimates, str):
        return
    if showing.output:
        estimates.write(showing.output, overwrite=showing.force)
        say(f"The estimates are in {showing.output}.", err=True)
    if page := showing.shown.report:
        say(f"The report is in {sl.write_report(estimates, page)}.", err=True)


def _from_checkpoints(
    files: list[Path], merged: Path | None, expected: list[sl.protocols.Protocol], showing: Showing
) -> None:
    """Estimate from the merged state of checkpoints, and keep it where a file is named."""
    from sidelight.transport.checkpoint import read_checkpoint

    check_writable(merged, (".json",), force=True)  # `_keep` sees to it that nothing is lost
    with progress(quiet=showing.shown.json):
        whole = reduce(add, [read_checkpoint(path, expected)[0] for path in files])
        estimates = _estimated(whole, showing)
    if isinstance(estimates, str):
        raise InputError(estimates)
    if merged:
        _keep(whole, merged)
    if showing.shown.json:
        say_json(estimates.to_json())
    else:
        sl.report.print_estimates(estimates)
    _report(whole, showing)


def _keep(whole: sl.transport.Aggregator, path: Path) -> None:
    """Write a merged state, unless the file holds batches that would be lost."""
    from sidelight.transport.checkpoint import locked, read_checkpoint, write_checkpoint

    with locked(path):
        former, files = read_checkpoint(path) if path.exists() else (None, {})
        lost = len(former.batches.keys() - whole.batches.keys()) if former else 0
        if lost:
            raise InputError(
                f"{path} holds {lost} batches that are not in the files named; name it too, or write the "
                "merged state elsewhere."
            )
        write_checkpoint(whole, path, files)


def _expected(files: list[Path]) -> list[sl.protocols.Protocol]:
    """Return the protocols that files name: a plan's, a protocol, or both phases of published parameters."""
    from sidelight.foundation.strict import read_data

    protocols: list[sl.protocols.Protocol] = []
    for path in files:
        data = read_data(path)
        if "second" in data:
            parameters = sl.protocols.SecondPhase.read(path)
            protocols += [parameters.design.first, parameters.second]
        elif "protocol" in data:
            protocols.append(sl.protocols.read_protocol(path))
        else:
            protocols.append(sl.protocols.planned(sl.Plan.read(path)))
    return protocols
