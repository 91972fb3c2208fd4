"""Options of `estimate` and `advise` about tables of several attributes, and synthetic people from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sidelight as sl
from sidelight.cli.common import Shown, check_writable, first_given, show
from sidelight.cli.options import flag
from sidelight.foundation.errors import InputError, check_whole

SYNTHETIC = (".csv", ".parquet")


@dataclass(frozen=True)
class Pairing:
    """Which tables are estimated, and whether people are drawn from them."""

    pairs: bool = flag(False, "Estimate the tables of all pairs of attributes, not frequencies.", "--pairs")
    set: list[str] | None = flag(None, "Estimate the table of these attributes, a,b,c; repeatable.")
    synthetic: Path | None = flag(
        None, "Write synthetic people, drawn from the tables of all pairs, to this .csv or .parquet file."
    )
    synthetic_people: int | None = flag(None, "With --synthetic: how many [as many as reported].")
    synthetic_seed: int | None = flag(
        None, "With --synthetic: draw the same people again; without a seed draws are the system's."
    )

    @property
    def is_asked_for(self) -> bool:
        """Whether tables are wanted."""
        return self.pairs or bool(self.set) or self.synthetic is not None

    def check(self, others: Mapping[str, object], sources: Sequence[Path], force: bool) -> None:
        """Refuse before the work what could not be written, and what says nothing about tables."""
        without = first_given({
            "--synthetic-people": self.synthetic_people, "--synthetic-seed": self.synthetic_seed
        })  # fmt: skip
        if self.synthetic is None and without:
            raise InputError(f"{without} goes with --synthetic; give it, or leave {without} out.")
        if self.synthetic_people is not None:
            check_whole("synthetic-people", self.synthetic_people, at_least=1)
        check_writable(self.synthetic, SYNTHETIC, sources=sources, force=force)
        if self.is_asked_for and (other := first_given(others)):
            raise InputError(
                f"{other} says nothing about tables; leave it out, or --pairs, --set, --synthetic."
            )
        if self.set and self.synthetic is not None:
            raise InputError("--synthetic needs the tables of all pairs; leave --set out.")

    def estimated(
        self, reports: Sequence[sl.RecordReports], confidence: float, about: str
    ) -> sl.estimation.PairEstimates:
        """Return the tables that are asked for."""
        sets = [part.split(",") for part in self.set or []] or None
        return sl.estimate_pairs(reports, sets=sets, confidence=confidence, about=about)  # type: ignore[arg-type]

    def show(
        self, estimates: sl.estimation.PairEstimates, shown: Shown, said: list[str], force: bool
    ) -> None:
        """Draw people where that is asked for, and show the tables."""
        if self.synthetic is not None:
            drawn = sl.estimation.synthetic_people(estimates, self.synthetic_people, seed=self.synthetic_seed)
            drawn.write(self.synthetic, overwrite=force)
            said += [
                f"{drawn.people} synthetic people are in {self.synthetic}.",
                *sl.report.synthetic_notes(drawn),
            ]
        show(estimates, shown, lambda: sl.report.print_pairs(estimates), said)
