"""Live figures beside those of an audit: never below them, and in the end the same."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.auditing import Sampling
from sidelight.leakage.totals import usual_draws
from sidelight.studio import live as live_room
from sidelight.studio import messages as said
from sidelight.studio.final import SEED, Refiner, draws_at
from sidelight.studio.session import Session
from studio_cases import budget, change, session_of, settled, titanic

NAMES = ("class", "age", "sex", "survived")


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    return titanic(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    """Nine attributes that depend on each other, so that exact totals are not live."""
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    rng = np.random.default_rng(5)
    hidden = rng.integers(0, 3, 300)
    columns = [(hidden + (rng.random(300) < 0.4) * rng.integers(0, 3, 300)) % (3 + at % 3) for at in range(9)]
    rows = [",".join(f"v{value}" for value in row) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join("abcdefghi"), *rows]) + "\n", encoding="utf-8")
    return path


def audited(session: Session) -> sl.Audit:
    document = session.document
    plan = session.opened.plan(document, document.plans[0])
    secrets = [item.name for item in document.settings.secrets] or None
    view = document.settings.adversary.view
    return sl.audit(session.opened.counted(plan), plan, secrets, sampling=Sampling(seed=SEED), adversary=view)


def number(value: said.Real) -> float:
    return float(value)


def check_final(shown: said.PlanFigures, audit: sl.Audit) -> None:
    for item in shown.secrets:
        found = audit[item.secret]
        assert number(item.own.value) == found.direct.value
        assert (number(item.total.value), item.total.kind) == (
            found.total.upper.value,
            found.total.upper.kind,
        )
        assert number(item.lower.value) == found.total.lower.value
        assert number(item.decisive.value) == found.decisive.value
        assert (item.outcome, item.statement) == (found.decision, found.statement)
        if found.neighbours:
            assert number(item.neighbour.value) == found.neighbours[0].value
        told = {story.adversary: story.leakage.value for story in found.stories}
        assert {figure.adversary: number(figure.value) for figure in item.at_delta} == told
    assert shown.pending == []


def test_final_figures_are_those_of_an_audit(people: Path) -> None:
    session = session_of(people)
    change(session, budget(0.7, "sex"), budget(2.5, "class"))
    change(session, said.SetSecrets(secrets=[said.Secret(name="survived", limit=1.0)], limit=None))
    change(session, said.SetMechanism(plan="plan-1", attributes=["age"], mechanism="identity"))
    check_final(settled(session), audited(session))


def test_final_figures_at_delta_are_those_of_an_audit_with_the_same_seed(wide: Path) -> None:
    session = session_of(wide)
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.05))
    shown = settled(session)
    check_final(shown, audited(session))
    assert len(shown.secrets[0].at_delta) == 2
    assert not shown.secrets[0].decisive.stale


def test_figures_at_delta_stay_greyed_until_they_are_told_anew(wide: Path) -> None:
    session = session_of(wide)
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    update = change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.05))
    awaited = update.figures[0].secrets[0]
    assert (awaited.outcome, awaited.decisive.stale) == ("not certified", True), "nobody knows yet"
    before = settled(session).secrets[0].decisive
    change(session, budget(0.9, "b"))
    parts = Refiner(session.opened).refined(session.document, "plan-1")
    first = session.refine("plan-1", next(parts)).secrets[0]
    assert (first.decisive.value, first.decisive.stale, first.total.stale) == (before.value, True, False)
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=None))
    worst = settled(session).secrets[0]
    assert (worst.at_delta, worst.decisive.value, worst.decisive.stale) == ([], worst.total.value, False)


def test_figures_at_delta_of_other_budgets_judge_nothing(wide: Path) -> None:
    session = session_of(wide)
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.05))
    first = settled(session).secrets[0]
    worst, told = number(first.total.value), number(first.decisive.value)
    assert told < worst, "or no limit is between them"
    secret = said.Secret(name=first.secret, limit=(told + worst) / 2)
    change(session, said.SetSecrets(secrets=[secret], limit=None))
    assert settled(session).outcome == "within"
    live = change(session, budget(6.0, *session.opened.schema.names)).figures[0]
    assert live.secrets[0].decisive.stale
    assert (live.outcome, "within" in live.secrets[0].statement) == ("not certified", False)
    part = next(Refiner(session.opened).refined(session.document, "plan-1"))
    assert session.refine("plan-1", part).outcome == "not certified"
    assert settled(session).outcome == "exceeded"


def test_a_figure_at_delta_stays_beside_the_one_that_is_told_anew(wide: Path) -> None:
    session = session_of(wide)
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.05))
    refiner = Refiner(session.opened)
    shown = [session.refine("plan-1", part) for part in refiner.refined(session.document, "plan-1")]
    assert any(figure.stale for item in shown for figure in item.secrets[0].at_delta), "a first look"
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.04))
    parts = list(refiner.refined(session.document, "plan-1"))
    assert not any(part.is_rough for part in parts), "what is on screen says more than a first look"
    for part in parts:
        figures = session.refine("plan-1", part).secrets[0].at_delta
        assert [figure.adversary for figure in figures] == ["population", "table"]
    deltas = [[figure.delta for figure in item.at_delta] for item in shown[-1].secrets]
    assert deltas == [[0.05, 0.05]]
    assert {figure.delta for figure in session.figures["plan-1"].secrets[0].at_delta} == {0.04}


@pytest.mark.parametrize(("decider", "first"), [(None, "table"), ("population", "population")])
def test_the_figure_that_decides_comes_first(wide: Path, decider, first: str) -> None:
    session = session_of(wide)
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(decide_by=decider), delta=0.05))
    parts = Refiner(session.opened).refined(session.document, "plan-1")
    final = [part for part in parts if part.secrets and part.secrets[0].stories and not part.is_rough]
    assert [len(part.secrets[0].stories) for part in final] == [1, 2]
    assert final[0].secrets[0].stories[0].adversary == first


def test_a_population_is_fitted_once_for_every_coding(wide: Path, monkeypatch) -> None:
    session, fitted = session_of(wide), []

    def counted(belief):
        fitted.append(belief)
        return sl.Belief.tree_of(belief)

    monkeypatch.setattr(sl.Belief, "population_of", counted)
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=0.05))
    refiner = Refiner(session.opened)
    refiner.prepare()
    for step in (
        budget(0.9, "b"), said.Withhold(plan="plan-1", attributes=["i"], withheld=True),
        said.Coarsen(plan="plan-1", attribute="c", values=3), budget(0.8, "b"),
    ):  # fmt: skip
        change(session, step)
        list(refiner.refined(session.document, "plan-1"))
    assert len(fitted) == 2


def test_a_coarsened_and_withheld_plan_has_the_figures_of_its_audit(wide: Path) -> None:
    session = session_of(wide)
    change(session, said.Coarsen(plan="plan-1", attribute="c", values=3))
    change(session, said.Withhold(plan="plan-1", attributes=["a", "i"], withheld=True))
    change(session, said.SetSecrets(secrets=[said.Secret(name="a"), said.Secret(name="c")], limit=3.0))
    check_final(settled(session), audited(session))


def test_guesses_have_figures_of_their_own(people: Path) -> None:
    session = session_of(people)
    change(session, said.SetMechanism(plan="plan-1", attributes=list(NAMES), mechanism="oue"))
    change(session, said.SetAdversary(adversary=said.Adversary(view="guess", decide_by="guess"), delta=None))
    change(session, said.SetSecrets(secrets=[], limit=2.0))
    check_final(settled(session), audited(session))


@given(
    budgets=st.lists(st.floats(0.05, 6.0), min_size=9, max_size=9),
    hidden=st.sets(st.sampled_from("abcdefghi"), max_size=6),
    coarse=st.sets(st.sampled_from("bcefhi"), max_size=3),
)
@settings(max_examples=8)
def test_live_figures_are_sound_whatever_is_chosen(wide: Path, budgets, hidden, coarse) -> None:
    session = _WIDE.get(wide) or _WIDE.setdefault(wide, session_of(wide))
    some = [said.Secret(name=name) for name in "ach"]
    changes: list[said.Change] = [said.SetSecrets(secrets=some, limit=None)]
    changes += [budget(value, name) for value, name in zip(budgets, "abcdefghi", strict=True)]
    for name in "abcdefghi":
        changes.append(said.Withhold(plan="plan-1", attributes=[name], withheld=name in hidden))
        if session.opened.coarser[name]:
            size = session.opened.coarser[name][0] if name in coarse else None
            changes.append(said.Coarsen(plan="plan-1", attribute=name, values=size))
    shown = change(session, *changes).figures[0]
    audit = audited(session)
    for item in shown.secrets:
        found = audit[item.secret]
        # never below what the reports reach, and never above what is certain
        assert number(item.total.value) >= found.total.lower.value - 1e-9
        assert number(item.own.value) == pytest.approx(found.direct.value, abs=1e-12)
        assert item.total.kind in ("exact", "certified")
        if not item.lower.stale:
            assert number(item.lower.value) <= found.total.upper.value + 1e-9
    for row, name in zip(shown.pairs.values, shown.pairs.releases, strict=True):
        for value, secret in zip(row, shown.pairs.secrets, strict=True):
            if secret != name:
                place = audit.plan.names.index(name), list(audit.secrets).index(secret)
                assert number(value) == pytest.approx(audit.pairs[place], abs=1e-12)


_WIDE: dict[Path, Session] = {}


def test_a_changed_budget_recomputes_one_row(wide: Path, monkeypatch) -> None:
    session = session_of(wide)
    asked: list[list[str]] = []
    usual = live_room.pair_matrix

    def counted(belief, channels, secrets):
        asked.append(list(channels))
        return usual(belief, channels, secrets)

    monkeypatch.setattr(live_room, "pair_matrix", counted)
    before = session.figures["plan-1"]
    after = change(session, budget(2.0, "d")).figures[0]
    assert asked == [["d"]]
    places = [
        at
        for at, rows in enumerate(zip(before.pairs.values, after.pairs.values, strict=True))
        if rows[0] != rows[1]
    ]
    assert places == [3]
    change(session, said.Undo())
    assert asked == [["d"]], "what was known is not computed again"


def test_other_plans_keep_their_figures(people: Path) -> None:
    session = session_of(people)
    change(session, said.AddPlan(name="other", copy_of="plan-1"))
    update = change(session, budget(2.0, "sex"))
    assert [item.plan for item in update.figures] == ["plan-1"]
    update = change(session, said.SetSecrets(secrets=[], limit=1.0))
    assert len(update.figures) == 2


def test_infinity_is_an_answer(people: Path) -> None:
    session = session_of(people)
    update = change(session, said.SetMechanism(plan="plan-1", attributes=["sex"], mechanism="identity"))
    (sex,) = [item for item in update.figures[0].secrets if item.secret == "sex"]
    assert sex.own.value == sex.total.value == sex.odds.factor == "infinity"
    assert sex.odds.after == 1.0
    assert "Infinity" not in update.model_dump_json()


def test_odds_are_those_of_bayes(people: Path) -> None:
    session = session_of(people)
    item = (
        change(session, said.SetSecrets(secrets=[said.Secret(name="survived", limit=1.0)], limit=None))
        .figures[0]
        .secrets[0]
    )
    factor = math.exp(number(item.decisive.value))
    odds = item.odds.before / (1 - item.odds.before) * factor
    assert item.odds.after == pytest.approx(odds / (1 + odds))


def test_a_cell_of_the_heat_map_in_full(people: Path) -> None:
    session = session_of(people)
    detail = session.pair("plan-1", "survived", "sex")
    row = session.figures["plan-1"].pairs
    cell = row.values[row.releases.index("sex")][row.secrets.index("survived")]
    assert number(detail.figure.value) == number(cell)
    assert detail.figure.witness
    values = [number(value) for _, value in detail.curve]
    assert values == sorted(values)
    assert values[-1] <= number(detail.saturation) + 1e-12


def test_errors_fall_as_budgets_rise_and_say_how_many_people(people: Path) -> None:
    session = session_of(people)
    errors = {item.attribute: item for item in settled(session).errors}
    change(session, budget(4.0, *NAMES))
    better = {item.attribute: item for item in settled(session).errors}
    for name in NAMES:
        assert number(better[name].error.value) < number(errors[name].error.value)
        assert better[name].people_needed < errors[name].people_needed
        plan = session.opened.plan(session.document, session.document.plans[0])
        known = {name: session.opened.shares[name]}
        needed = sl.estimation.people_needed(sl.protocols.planned(sl.Plan((plan[name],))), 0.02, known)
        assert better[name].people_needed == needed


def test_of_very_many_draws_a_third_must_do(wide: Path) -> None:
    session = session_of(wide)
    plan = session.opened.plan(session.document, session.document.plans[0])
    for delta in (0.05, 1e-2, 1e-3, 1e-4, 1e-9):
        draws, usual = draws_at(session.opened.belief, plan, "a", delta), usual_draws(delta)
        assert draws is None if delta in (0.05, 1e-2, 1e-9) else usual / 3 <= draws < usual
