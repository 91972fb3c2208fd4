"""The command `estimate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import Encoding, Force, Json, ReportFile, check_writable, first_given, progress
from sidelight.cli.follow import (
    Checkpoint,
    Every,
    Expect,
    Follow,
    Idle,
    Once,
    Showing,
    State,
    estimate_from_state,
)
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.protocols import RecordReports, TwoPhase
    from sidelight.schema import Schema

CopyingName = Annotated[
    str | None,
    typer.Option(
        help="With --learn: Corr-RR's copy probabilities, 'published' [the default] or 'corrected'."
    ),
]
Groups = Annotated[
    int | None, typer.Option(help="With --learn: groups that the attributes are divided in [1].")
]


Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Write the estimates to this .csv, .parquet or .json file."),
]


def estimate(
    reports: Annotated[
        list[Path] | None,
        typer.Argument(help="Report files; of both phases where there are two. Or checkpoints."),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="'best', 'inversion', 'simplex', 'shrinkage', 'em' or 'published'.")
    ] = "best",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    about: Annotated[
        str, typer.Option(help="'collected' (those who reported) or 'population' (theirs).")
    ] = "collected",
    truth: Annotated[
        str | None, typer.Option(help="The true records, to compare with: a CSV, TSV or Parquet file.")
    ] = None,
    learn: Annotated[
        Path | None,
        typer.Option(help="Write the second phase's parameters, learnt from these reports, to this file."),
    ] = None,
    copying: CopyingName = None,
    groups: Groups = None,
    follow: Follow = None,
    checkpoint: Checkpoint = None,
    expect: Expect = None,
    once: Once = False,
    idle: Idle = None,
    every: Every = None,
    encoding: Encoding = "utf-8",
    output: Output = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Estimate the frequencies of every attribute from reports."""
    import sidelight as sl

    files = reports or []
    check_writable(
        output, (".csv", ".parquet", ".json"), sources=(*files, truth, follow, checkpoint), force=force
    )
    check_writable(report, (".html", ".htm"))
    check_writable(learn, (".toml", ".json"), sources=files)
    state = State(files, follow, checkpoint, expect or [], once, idle, every)
    without = first_given({"--copying": copying, "--groups": groups})
    if learn is None and without:
        raise sl.InputError(f"{without} goes with --learn; give it, or leave {without} out.")
    if state.is_asked_for(learn):
        settings = {"estimator": estimator, "confidence": confidence, "about": about}
        known_to = (lambda schema: _truth(truth, schema, encoding)) if truth else None
        estimate_from_state(state, Showing(settings, known_to, report, json, output, force))
        return
    with progress(quiet=json):
        read = [sl.read_reports(path) for path in files]
        found = sl.estimate(read, estimator=estimator, confidence=confidence, about=about)  # type: ignore[arg-type]
        known = _truth(truth, found.schema, encoding) if truth else None
        if learn:
            from sidelight.estimation.second_phase import learn_second_phase

            learn_second_phase(_design(read, copying, groups), read).write(learn)
    result = found.against(known) if known is not None else found
    written = sl.write_report(result, report) if report else None
    if output:
        result.write(output, overwrite=force)
    if json:
        say_json(result.to_json())
    else:
        _show_estimates(result, learn, output, written)


def _show_estimates(result: Any, learn: Path | None, output: Path | None, written: Path | None) -> None:
    from sidelight.report.collection_terminal import print_estimates

    print_estimates(result)
    said = {"parameters of the second phase are": learn, "estimates are": output, "report is": written}
    for what, path in said.items():
        if path:
            say(f"The {what} in {path}.")


def _design(reports: list[RecordReports], copying: str | None, groups: int | None) -> TwoPhase:
    """Return the two-phase design whose first phase these reports are."""
    import sidelight as sl

    phase = reports[0].phase
    if phase is None:
        raise sl.InputError(
            f"--learn needs reports of a first phase, made with --protocol corr-rr or cond-rr; got "
            f"{reports[0].protocol.name!r}."
        )
    schema = reports[0].protocol.schema
    return sl.protocols.TwoPhase(
        schema, phase.epsilon, phase.method, copying or "published",  # type: ignore[arg-type]
        phase.share, 1 if groups is None else groups,
    )  # fmt: skip


def _truth(data: str, schema: Schema, encoding: str) -> Any:
    import sidelight as sl
    from sidelight.transport import true_frequencies

    return true_frequencies(sl.read(data, schema=schema, encoding=encoding), schema)
