"""The commands `demo` and `audit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

import sidelight as sl
from sidelight.cli import common
from sidelight.cli.common import Shown, progress, show
from sidelight.cli.options import Data, MinSupport, Names, Reading, Smoothing, Withhold, flag, grouped
from sidelight.cli.plan import Said, Weighing, read_plans, show_comparison, weighed
from sidelight.cli.remedies import Remedied, show_remedies
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.foundation.terminal import say

Plans = Annotated[
    list[Path] | None,
    typer.Argument(help="Plan files (.toml or .json); several are put side by side.", show_default=False),
]


@dataclass(frozen=True)
class Released:
    """What is released, and how much it may leak."""

    plan: Path | None = flag(None, "A plan file (.toml or .json).")
    epsilon: float | None = flag(None, "Budget of every attribute, without a plan [1].")
    mechanism: str | None = flag(None, "Mechanism of every attribute, without a plan [grr].")
    limit: float | None = flag(None, "How much each secret may leak, in nats [as in the plan, else none].")
    secret: Names = flag(None, "A secret, or secret=limit; repeatable. All attributes by default.")
    withhold: Withhold = None

    def in_full(self, given: sl.Plan | None, table: sl.Table) -> sl.Plan:
        """Return the plan that a file gives, or that the other options make, less what is withheld."""
        epsilon = 1.0 if self.epsilon is None else self.epsilon
        plan = given or sl.Plan.uniform(table.schema, self.mechanism or "grr", epsilon)
        return plan.withholding(self.withhold) if self.withhold else plan


@dataclass(frozen=True)
class Asked:
    """Which figures are computed, and for whom limits must be kept."""

    belief: str = flag("auto", "'auto', 'joint', 'pairwise', or 'tree': also the figure of a tree model.")
    adversary: str = flag("report", "Keeps the whole 'report', or one 'guess' from it.")
    decide_by: str | None = flag(
        None,
        "For whom limits must be kept. With --delta: who knows the 'table' (so by default) or the "
        "'population'. In the worst case: the whole 'report' (the default without --delta), or a weaker "
        "adversary that was asked for: 'guess' (--adversary guess), 'model' (--belief tree), 'model guess'.",
    )
    confidence: float | None = flag(None, "Also figures that hold together with this confidence, as 0.95.")
    synergy: int = flag(0, "How many pairs of reports to name that say more together.")
    smoothing: Smoothing = 0.0
    method: str = flag("auto", "Of the total: 'auto', 'exact', 'joint generic' or 'composition'.")
    min_support: MinSupport = 0
    save_plan: Path | None = flag(None, "Write the plan that was audited, or that of --remedy, to this file.")
    assessment: Path | None = flag(
        None, "Write what a data protection assessment asks for to this file (.md or .json)."
    )


@dataclass(frozen=True)
class Changes:
    """Values that change from round to round."""

    chain: Path | None = flag(
        None, "Also what leaks where values change: a file of transitions, or of a panel (.toml or .json)."
    )
    epoch: int | None = flag(None, "With --chain: for how many rounds a device keeps a value frozen.")

    def check(self) -> None:
        """Refuse before the work what no table makes right."""
        if self.epoch is not None:
            check_whole("epoch", self.epoch, at_least=1)
            if self.chain is None:
                raise InputError("--epoch is about values that change; add --chain FILE, which says how.")

    def told(self, result: sl.Audit, seed: int | None) -> sl.Audit:
        """Return the audit with what the chain says."""
        if self.chain is None:
            return result
        chain = sl.leakage.over_time.read_chain(self.chain, result.belief.schema)
        return sl.auditing.with_chain(result, chain, epoch=self.epoch, seed=seed)


@dataclass(frozen=True)
class AtDelta:
    """Figures beyond which some people may be exposed."""

    delta: float | None = flag(
        None,
        "Also what the release says if this share of people may be exposed beyond it, as 0.001: to someone "
        "who knows the population and to someone who knows this very table, each beside a shuffled table's.",
    )
    draws: int | None = flag(None, "With --delta: how many releases to draw for each value of a secret.")
    precision: float | None = flag(
        None, "With --delta: draw on until a figure is within this share of its estimate, as 0.02."
    )
    seed: int | None = flag(None, "With --delta: for figures that can be repeated.")
    device: str | None = flag(
        None, "With --delta: where releases of the table are drawn, 'cpu' or 'cuda' (extra neural)."
    )

    @property
    def sampling(self) -> sl.auditing.Sampling:
        """How releases are drawn."""
        return sl.auditing.Sampling(self.draws, self.precision, self.seed, self.device or "cpu")

    def check(self, planned: float | None) -> None:
        """Refuse before the work what could not be drawn, or would change nothing without any delta."""
        if self.delta is not None:
            check_number("delta", self.delta, above=0, below=1)
            self.sampling  # noqa: B018 - made for its checks
        names = ("draws", "precision", "seed", "device")
        drawn = {f"--{name}": value for name, value in vars(self).items() if name in names}
        if self.delta is None and planned is None and (name := common.first_given(drawn)):
            raise InputError(f"{name} is for figures at delta; add --delta, as in --delta 0.001.")


@grouped(project=False)
def demo(shown: Shown) -> None:
    """Audit a bundled table: the 2,201 people of the Titanic."""
    with progress(quiet=shown.json):
        table = sl.example("titanic")
        result = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema))
    show(result, shown, lambda: sl.report.print_audit(result, table))
    if not shown.json:
        sl.report.print_lesson()


@grouped(cached=True)
def audit(
    data: Data, plans: Plans = None, *, released: Released, reading: Reading, at: AtDelta, asked: Asked,
    changes: Changes, remedied: Remedied, shown: Shown,
) -> None:  # fmt: skip
    """Tell what a release reveals about each attribute through the others.

    Without a limit it describes. With one it judges: exit code 0 means that every secret with a limit is
    certified to stay within it, for the adversary who decides. Several plans are put side by side.
    """
    secrets, limits = common.secrets_with_limits(released.secret, released.limit)
    common.check_writable(asked.save_plan, common.SETTINGS)
    common.check_writable(asked.assessment, (".md", ".json"))
    if data.endswith(".toml"):
        fix = f"as in sidelight audit people.csv {data}"
        raise InputError(f"{data} is a plan; name the table before it, {fix}, or in a project file.")
    paths = [*([released.plan] if released.plan else []), *(plans or [])]
    remedied.check(asked.save_plan, asked.min_support)
    changes.check()
    if len(paths) > 1:
        for name, value in {"--remedies": remedied.is_asked or None, "--chain": changes.chain}.items():
            common.refuse_several({"several plans": paths, name: value})
        _side_by_side(data, paths, released=released, reading=reading, at=at, asked=asked, shown=shown)
        return
    released = replace(released, plan=paths[0] if paths else None)
    given = sl.Plan.read(released.plan) if released.plan else None
    planned = None if given is None else given.delta
    at.check(planned)
    _check(released.epsilon, asked, at.delta or planned)
    with progress(quiet=shown.json):
        common.refuse_both(given, {"--epsilon": released.epsilon, "--mechanism": released.mechanism})
        named = [*secrets, *(released.withhold or [])]
        table = common.read_table(data, reading, given, named, numbered=secrets)
        plan = released.in_full(given, table)
        plan = _limited(plan, released.limit, limits, secrets)
        remedied.check_limits(plan, secrets)
        result = changes.told(_audited(table, plan, secrets, asked, at), at.seed)
        found = remedied.found(result, at.seed) if remedied.is_asked else None
    if asked.save_plan and (found is None or remedied.remedy is None):
        plan.write(asked.save_plan, like=released.plan)
    elif asked.save_plan and found is not None:
        remedied.chosen(found).write(asked.save_plan, like=released.plan)
    if asked.assessment:
        sl.report.write_assessment(result, asked.assessment, found)
    if found is None:
        show(result, shown, lambda: sl.report.print_audit(result, table))
    else:
        show_remedies(found, table, shown)
    if not shown.json:
        _say_where(asked)
    if result.is_within is False:
        raise typer.Exit(1)


def _say_where(asked: Asked) -> None:
    """Name the files that were written besides the report."""
    for what, path in (("plan", asked.save_plan), ("assessment", asked.assessment)):
        if path:
            say(f"The {what} is in {path}.")


def _side_by_side(
    data: str, paths: list[Path], *, released: Released, reading: Reading, at: AtDelta, asked: Asked,
    shown: Shown,
) -> None:  # fmt: skip
    """Audit several plans for one adversary, and show them side by side."""
    usual = Asked(decide_by=asked.decide_by, smoothing=asked.smoothing, min_support=asked.min_support)
    single = vars(asked).items() - vars(usual).items()
    written = {"epsilon": released.epsilon, "mechanism": released.mechanism, "withhold": released.withhold}
    for name in [*dict(single), *(name for name, value in written.items() if value is not None)]:
        raise InputError(f"--{name.replace('_', '-')} is for one plan, and {len(paths)} are named.")
    secrets, limits = common.secrets_with_limits(released.secret, released.limit)
    plans = {
        name: _limited(plan, released.limit, limits, secrets) for name, plan in read_plans(paths).items()
    }
    common.check_counts(smoothing=asked.smoothing)
    at.check(next((plan.delta for plan in plans.values() if plan.delta is not None), None))
    weighing = Weighing(secrets or None, None, at.delta, asked.decide_by, min_support=asked.min_support)
    with progress(quiet=shown.json):
        result = weighed(data, plans, reading, weighing, sampling=at.sampling, smoothing=asked.smoothing)
    show_comparison(result, Said(json=shown.json), shown.report)


def _check(epsilon: float | None, asked: Asked, delta: float | None) -> None:
    """Refuse before the work what no table makes right."""
    if epsilon is not None:
        check_number("epsilon", epsilon, above=0)
    if asked.confidence is not None:
        check_number("confidence", asked.confidence, above=0, below=1)
    check_choice("belief", asked.belief, ("auto", "joint", "pairwise", "tree"))
    check_choice("adversary", asked.adversary, ("report", "guess"))
    told: tuple[sl.auditing.AdversaryName, ...] = (
        ("table",) if asked.belief == "pairwise" else ("population", "table")
    )
    if asked.decide_by is not None:
        sl.auditing.check_decider(
            asked.decide_by, asked.adversary, is_model=False, has_model=asked.belief == "tree",  # type: ignore[arg-type]
            told=() if delta is None else told,
        )  # fmt: skip
    if asked.method == "tree":  # a model's figure is no bound, so no verdict may rest on it
        fix = "--belief tree shows that figure beside it."
        raise invalid("method", "a bound on the total", asked.method, fix)
    check_choice("method", asked.method, ("auto", "exact", "joint generic", "composition"))
    common.check_counts(smoothing=asked.smoothing, synergies=asked.synergy, min_support=asked.min_support)


def _limited(plan: sl.Plan, limit: float | None, limits: dict[str, float], secrets: list[str]) -> sl.Plan:
    """Return the plan with the limits that were given: one for a secret, one for all audited, the plan's."""
    if limit is not None and not secrets:
        return replace(plan, limit=limit, limits=limits)
    audited = {} if limit is None else dict.fromkeys(secrets, limit)
    return replace(plan, limits={**plan.limits, **audited, **limits})


def _audited(table: sl.Table, plan: sl.Plan, secrets: list[str], asked: Asked, at: AtDelta) -> sl.Audit:
    kind = "auto" if asked.belief == "tree" else asked.belief
    belief = sl.Belief.from_data(table, kind, smoothing=asked.smoothing)  # type: ignore[arg-type]
    return sl.audit(
        belief, plan, secrets or None, delta=at.delta, sampling=at.sampling,
        method=asked.method, adversary=asked.adversary, model=asked.belief == "tree",  # type: ignore[arg-type]
        confidence=asked.confidence, synergies=asked.synergy, min_support=asked.min_support,
        decide_by=asked.decide_by,  # type: ignore[arg-type]
    )  # fmt: skip
