"""The command `estimate`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import SETTINGS, Shown, check_writable, first_given, progress, show
from sidelight.cli.follow import Showing, State, estimate_from_state
from sidelight.cli.options import Encoding, Force, flag, grouped
from sidelight.cli.pairs import Pairing
from sidelight.cli.panel import are_rounds, estimate_panel
from sidelight.cli.wanted import Wanted
from sidelight.foundation.errors import InputError

if TYPE_CHECKING:
    from sidelight.estimation.estimates import Comparison


@dataclass(frozen=True)
class Estimation:
    """How frequencies are estimated, and what they are compared with."""

    estimator: str = flag(
        "best", "'best', 'inversion', 'simplex', 'shrinkage', 'least-risk', 'em' or 'published'."
    )
    confidence: float = flag(0.95, "Of the intervals.")
    about: str = flag("collected", "'collected' (those who reported) or 'population' (theirs).")
    truth: list[str] | None = flag(
        None, "The true records, to compare with: a CSV, TSV or Parquet file; of rounds one for each."
    )

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `sl.estimate`."""
        return {"estimator": self.estimator, "confidence": self.confidence, "about": self.about}


@dataclass(frozen=True)
class Learning:
    """Where the second phase's parameters are written, and how they are learnt."""

    learn: Path | None = flag(
        None, "Write the second phase's parameters, learnt from these reports, to this file."
    )
    copying: str | None = flag(
        None, "With --learn: Corr-RR's copy probabilities, 'published' [the default] or 'corrected'."
    )
    groups: int | None = flag(None, "With --learn: groups that the attributes are divided in [1].")

    def check(self, reports: list[Path]) -> None:
        """Refuse before the work what could not be written, and what says something about no phase."""
        check_writable(self.learn, SETTINGS, sources=reports)
        without = first_given({"--copying": self.copying, "--groups": self.groups})
        if self.learn is None and without:
            raise InputError(f"{without} goes with --learn; give it, or leave {without} out.")

    def write(self, reports: list[sl.RecordReports]) -> None:
        """Learn the parameters, if that is asked for, and write them."""
        if not self.learn:
            return
        from sidelight.estimation.second_phase import learn_second_phase

        phase, protocol = reports[0].phase, reports[0].protocol
        if phase is None:
            raise InputError(
                f"--learn needs reports of a first phase, made with --protocol corr-rr, cond-rr or "
                f"adaptive-pairs; got {protocol.name!r}."
            )
        design = sl.protocols.TwoPhase(
            protocol.schema, phase.epsilon, phase.method, self.copying or "published",  # type: ignore[arg-type]
            phase.share, 1 if self.groups is None else self.groups,
        )  # fmt: skip
        learn_second_phase(design, reports).write(self.learn)


@dataclass(frozen=True)
class Written:
    """The file that the estimates are written to."""

    encoding: Encoding = "utf-8"
    output: Path | None = flag(
        None, "Write the estimates to this .csv, .parquet or .json file.", "-o", "--output"
    )
    force: Force = False


Reports = Annotated[
    list[Path] | None,
    typer.Argument(help="Report files; of both phases where there are two. Or checkpoints."),
]


@grouped()
def estimate(
    *, reports: Reports = None, estimation: Estimation, pairing: Pairing, wanted: Wanted, learning: Learning,
    state: State, written: Written, shown: Shown,
) -> None:  # fmt: skip
    """Estimate the frequencies of every attribute from reports, and say whether that beats guessing."""
    files, output, truth = reports or [], written.output, estimation.truth or []
    sources = (*files, *truth, state.follow, state.checkpoint)
    check_writable(output, (".csv", ".parquet", ".json"), sources=sources, force=written.force)
    learning.check(files)
    others = {
        "--truth": truth or None, "--within": wanted.within, "--prior": wanted.prior,
        "--follow": state.follow,
        "--estimator": None if estimation.estimator == "best" else estimation.estimator,
    }  # fmt: skip
    pairing.check(others, files, written.force)
    if pairing.is_asked_for:
        _estimate_pairs(files, estimation, pairing, learning, written, shown)
        return

    def finish(estimates: sl.Estimates) -> sl.Estimates | Comparison:
        schema, encoding = estimates.schema, written.encoding
        judged = replace(estimates, within=wanted.within, prior=wanted.guess(schema, encoding))
        if not truth:
            return judged
        if len(truth) > 1:
            raise InputError(f"--truth is given {len(truth)} times, and this is one collection; name one.")
        table = sl.read(truth[0], schema=schema, encoding=encoding)
        return judged.against(sl.transport.true_frequencies(table, schema))

    if state.is_asked_for(files, learning.learn):
        showing = Showing(estimation.settings, finish, shown, output, written.force)
        estimate_from_state(state, files, showing)
        return
    with progress(quiet=shown.json):
        read = [sl.read_reports(path) for path in files]
    if are_rounds(read):
        _refuse_single(learning, wanted)
        _estimate_over_time(read, estimation, written, shown)
        return
    with progress(quiet=shown.json):
        known = read[0].protocol.schema if estimation.estimator == "best" and read else None
        prior = None if known is None else wanted.guess(known, written.encoding)
        result = finish(sl.estimate(read, prior=prior, **estimation.settings))
        learning.write(read)
    if output:
        result.write(output, overwrite=written.force)
    named = {"parameters of the second phase": learning.learn, "estimates": output}
    said = [f"The {what} are in {path}." for what, path in named.items() if path]
    show(result, shown, lambda: sl.report.print_estimates(result), said)


def _estimate_over_time(
    reports: list[sl.RecordReports], estimation: Estimation, written: Written, shown: Shown
) -> None:
    """Estimate levels and changes from the reports of several rounds, and show them."""
    with progress(quiet=shown.json):
        found = estimate_panel(reports, estimation.settings, estimation.truth or [], written.encoding)
    if written.output:
        found.write(written.output, overwrite=written.force)
    said = [f"The estimates are in {written.output}."] if written.output else []
    show(found, shown, lambda: sl.report.print_round_estimates(found), said)


def _refuse_single(learning: Learning, wanted: Wanted) -> None:
    """Refuse what can only be said of one collection."""
    single = {"--learn": learning.learn, "--within": wanted.within, "--prior": wanted.prior}
    if option := first_given(single):
        raise InputError(f"{option} is for a single collection; these are several rounds: leave it out.")


def _estimate_pairs(
    files: list[Path],
    estimation: Estimation,
    pairing: Pairing,
    learning: Learning,
    written: Written,
    shown: Shown,
) -> None:
    """Estimate tables from report files, draw people from them where asked for, and show them."""
    if not files:
        raise InputError("name the report files that the tables are estimated from.")
    if sums := next((path for path in files if path.suffix.lower() == ".json"), None):
        raise InputError(f"{sums} is a checkpoint; name the report files for tables.")
    with progress(quiet=shown.json):
        read = [sl.read_reports(path) for path in files]
        estimates = pairing.estimated(read, estimation.confidence, estimation.about)
        learning.write(read)
    if written.output:
        estimates.write(written.output, overwrite=written.force)
    named = {"parameters of the second phase": learning.learn, "tables": written.output}
    said = [f"The {what} are in {path}." for what, path in named.items() if path]
    pairing.show(estimates, shown, said, written.force)
