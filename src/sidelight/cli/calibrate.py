"""The command `calibrate`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

import sidelight as sl
from sidelight.cli import common
from sidelight.cli.common import Shown, numbers_only, progress, show
from sidelight.cli.options import Data, Names, Reading, Smoothing, Withhold, flag, grouped
from sidelight.cli.wanted import Wanted
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole

_FRONTIER = (0.25, 0.5, 1.0, 2.0, 4.0)  # evenly spread on the logarithmic axis of the figure


@dataclass(frozen=True)
class Wishes:
    """What may leak how much, and what is asked for each attribute."""

    output: Path | None = flag(None, "Write the plan to this .toml or .json file.", "--output", "-o")
    limit: float | None = flag(
        None, "How much every attribute may leak, in nats [if no secret is named: the plan's, or 1]."
    )
    secret: Names = flag(
        None, "A secret, or secret=limit [the plan's, or 1]; repeatable. Without --limit the only ones."
    )
    not_secret: Names = flag(None, "An attribute that may leak without limit; repeatable.")
    weight: Names = flag(None, "attribute=number: how much its error counts [1]; repeatable.")
    fix: Names = flag(None, "attribute=budget that is not to be changed; repeatable.")
    withhold: Withhold = None
    as_is: Names = flag(None, "An attribute that is released without noise; repeatable.")

    def __post_init__(self) -> None:
        """Refuse, before the work, what is wrong for every table."""
        from sidelight.calibration.problem import check_weight
        from sidelight.plan import LARGEST_EPSILON

        common.check_writable(self.output, common.SETTINGS)
        for name, budget in self.fixed.items():
            check_number(f"epsilon of {name}", budget, above=0, below=LARGEST_EPSILON)
        for name, weight in self.weights.items():
            check_weight(name, weight)
        for first, ours, second, theirs in (
            ("--withhold", self.withhold, "--as-is", self.as_is),
            ("--secret", self.secrets, "--not-secret", self.not_secret),
        ):
            for name in set(ours or ()) & set(theirs or ()):
                raise InputError(f"{name!r} is named by {first} and by {second}; choose one.")

    @property
    def secrets(self) -> list[str]:
        """The secrets that are named, with a limit or without."""
        return common.secrets_with_limits(self.secret, self.limit)[0]

    @property
    def limits(self) -> dict[str, float]:
        """The limits of secrets that have one of their own."""
        return common.secrets_with_limits(self.secret, self.limit)[1]

    @property
    def fixed(self) -> dict[str, float]:
        """The budgets that are not to be changed."""
        return numbers_only("`--fix`", "of the form attribute=number", self.fix or [])

    @property
    def weights(self) -> dict[str, float]:
        """How much the error of an attribute counts."""
        return numbers_only("`--weight`", "of the form attribute=number", self.weight or [])

    @property
    def mechanisms(self) -> dict[str, str]:
        """The mechanisms of attributes that are not released, or without noise."""
        hidden, plain = self.withhold or [], self.as_is or []
        return dict.fromkeys(hidden, "withheld") | dict.fromkeys(plain, "identity")

    @property
    def named(self) -> list[str]:
        """Every attribute that an option names."""
        return [*self.secrets, *(self.not_secret or []), *self.weights, *self.fixed, *self.mechanisms]

    @property
    def is_limited(self) -> bool:
        """Whether every limit that counts was given."""
        return self.limit is not None or bool(self.secrets and set(self.secrets) <= set(self.limits))

    def secrets_of(self, table: sl.Table, plan: sl.Plan | None) -> list[str] | None:
        """Return the secrets: all attributes with --limit or if none is named, less those not secret.

        Where the limits are the plan's, what it lets leak without limit is no secret either.
        """
        free = self.not_secret or []
        if self.secrets and self.limit is None:
            return [name for name in self.secrets if name not in free]
        if not free:
            return None
        names = table.schema.names
        if plan is not None and self.limit is None:
            # a plan without any limit leaves all of them to the search
            unlimited = (math.inf, None) if plan.limits else (math.inf,)
            names = tuple(name for name in names if plan.limit_of(name) not in unlimited)
        return [name for name in names if name not in free]


@dataclass(frozen=True)
class Search:
    """How the budgets are found, and who decides."""

    mechanism: str | None = flag(None, "Of every attribute, without a plan [grr]; 'auto' chooses by error.")
    plan: Path | None = flag(None, "Take mechanisms, bins and limits that are not given from here.")
    uniform: bool = flag(False, "One budget for all attributes.", "--uniform")
    constraint: str = flag(
        "table", "'table' (certified), 'tree' (a model), 'robust' or 'published' (no bound)."
    )
    method: str = flag("auto", "Of 'table': 'auto', 'exact', 'joint generic', 'composition'.")
    confidence: float | None = flag(None, "Of 'robust', between 0 and 1 [0.95].")
    delta: float | None = flag(
        None, "Keep the limits at this delta, as 0.001: a release may say more with so small a probability."
    )
    decide_by: str | None = flag(
        None,
        "For whom limits must be kept: the whole 'report' [without --delta], or a 'model' (--constraint "
        "tree); with --delta who knows the 'table' [so by default], the 'population', or a 'tree' of it.",
    )
    seed: int | None = flag(None, "With --delta: for draws that can be repeated [the system's coins].")
    utility: str = flag("variance", "'variance' or 'accuracy'.")
    collected: str | None = flag(None, "A table the plan will be used on; it is audited under that too.")
    people: int | None = flag(None, "How many will report [the table's rows].")

    def __post_init__(self) -> None:
        """Refuse, before the work, what is wrong for every table."""
        from sidelight.calibration.constraint import check_constraint
        from sidelight.calibration.problem import UTILITIES

        check_constraint(self.constraint, self.method, self.confidence)
        check_choice("utility", self.utility, UTILITIES)
        if self.people is not None:
            check_whole("people", self.people, at_least=1)
        if self.delta is not None:
            check_number("delta", self.delta, above=0, below=1)
            check_choice("decide_by", self.decide_by or "table", sl.auditing.AT_DELTA)
            return
        # a model may decide only where there is one
        is_model = self.constraint == "tree"
        sl.auditing.check_decider(self.decide_by or "report", "report", is_model=is_model, has_model=False)


@grouped(cached=True)
def calibrate(
    data: Data, *, wishes: Wishes, search: Search, wanted: Wanted, reading: Reading,
    smoothing: Smoothing = 0.0, shown: Shown,
) -> None:  # fmt: skip
    """Find the largest budgets that keep every secret under its limit, and say what they are worth.

    Exit code 0 means that every secret is certified to stay within its limit, for the adversary who decides.
    """
    common.check_counts(smoothing=smoothing)
    with progress(quiet=shown.json):
        given = sl.Plan.read(search.plan) if search.plan else None
        common.refuse_both(given, {"--mechanism": search.mechanism})
        table = common.read_table(data, reading, given, wishes.named, numbered=wishes.secrets)
        rules: dict[str, Any] = {
            "limit": wishes.limit, "limits": wishes.limits, "fixed": wishes.fixed, "weights": wishes.weights,
            "mechanisms": wishes.mechanisms, "mechanism": search.mechanism or "grr", "method": search.method,
            "budgets": "uniform" if search.uniform else "unequal", "constraint": search.constraint,
            "confidence": search.confidence, "utility": search.utility, "decide_by": search.decide_by,
            "delta": search.delta, "seed": search.seed, "reports": search.people,
        }  # fmt: skip
        if search.collected is not None:
            rows = sl.read(search.collected, schema=table.schema, encoding=reading.encoding)
            rules["collected"] = sl.Belief.from_data(rows)
        if shown.report:  # a page shows them; they take long
            rules |= {"frontier": _FRONTIER, "compare": True}
        belief = sl.Belief.from_data(table, smoothing=smoothing)
        secrets = wishes.secrets_of(table, given)
        prior = wanted.guess(table.schema, reading.encoding)  # before the search, which may take long
        result = sl.calibrate(belief, secrets=secrets, plan=given, **rules)
        result = replace(result, within=wanted.within, prior=prior)
    if wishes.output:
        result.plan.write(wishes.output, like=search.plan)
    said = [f"The plan is in {wishes.output}."] if wishes.output else []
    if search.plan and not wishes.is_limited:
        said.insert(0, f"Limits that were not given are those of {search.plan}.")
    show(result, shown, lambda: sl.report.print_calibration(result, table), said)
    if not (result.is_within and (result.collected is None or result.collected.is_within)):
        raise typer.Exit(1)
