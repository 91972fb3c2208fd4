"""The session: changes, their history, the state's file, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from sidelight.foundation.errors import InputError
from sidelight.studio import messages as said
from sidelight.studio.document import MENU
from sidelight.studio.history import MOST_STEPS, read_state, state_text
from sidelight.studio.opened import MOST_ATTRIBUTES, Place, open_table
from sidelight.studio.session import Session
from studio_cases import budget, change, session_of, titanic


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return session_of(titanic(tmp_path), ready=False)


NAMES = ("class", "age", "sex", "survived")


def epsilon(session: Session, name: str) -> float | None:
    (row,) = [row for row in session.plans()[0].releases if row.attribute == name]
    return row.epsilon


def test_a_change_is_taken_back_and_made_again(session: Session) -> None:
    change(session, budget(2.0, "sex"))
    change(session, said.SetMechanism(plan="plan-1", attributes=["age", "sex"], mechanism="oue"))
    assert session.steps().undo == "mechanism of 2 attributes"
    assert change(session, said.Undo()).history.redo == "mechanism of 2 attributes"
    assert session.plans()[0].releases[0].mechanism == "grr"
    change(session, said.Undo())
    assert epsilon(session, "sex") == 1.0
    change(session, said.Redo())
    assert epsilon(session, "sex") == 2.0
    change(session, budget(3.0, "sex"))
    with pytest.raises(InputError, match="nothing to do again"):
        change(session, said.Redo())


def test_a_drag_is_one_step(session: Session) -> None:
    for value in (1.1, 1.2, 1.3):
        change(session, budget(value, "sex"), gesture="drag 1")
    change(session, budget(2.0, "age"), gesture="drag 2")
    change(session, said.Undo())
    change(session, said.Undo())
    assert (epsilon(session, "sex"), session.steps().undo) == (1.0, None)


def test_changes_are_made_all_or_not_at_all(session: Session) -> None:
    with pytest.raises(InputError, match="no attribute 'seks'"):
        change(session, budget(2.0, "sex"), budget(2.0, "seks"))
    assert (epsilon(session, "sex"), session.revision) == (1.0, 0)


def test_a_first_change_counts_as_saved_only_once_it_is_written(session: Session) -> None:
    assert (session.state().saved, session.state().revision) == (0, 0)
    change(session, budget(2.0, "sex"))
    assert (session.state().saved, session.state().revision) == (0, 1)


def test_the_history_is_bounded(session: Session) -> None:
    history = session.history
    for step in range(MOST_STEPS + 20):
        history = history.then(session.document, f"step {step}")
    assert (len(history.steps), history.undo_words) == (MOST_STEPS, f"step {MOST_STEPS + 19}")


@pytest.mark.parametrize(
    ("wrong", "said_so"),
    [
        (budget(1.0, "sex", plan="nobody"), "no plan 'nobody'"),
        (said.SetMechanism(plan="plan-1", attributes=["sex"], mechanism="laplace"), "mechanism"),
        (said.Coarsen(plan="plan-1", attribute="sex", values=2), "can be coarsened to nothing less, got 2"),
        (said.Withhold(plan="plan-1", attributes=[*NAMES], withheld=True), "at least one"),
        (said.SetSecrets(secrets=[said.Secret(name="sex"), said.Secret(name="sex")], limit=None), "twice"),
        (said.SetSecrets(secrets=[said.Secret(name="nobody")], limit=None), "no attribute 'nobody'"),
        (said.SetAdversary(adversary=said.Adversary(decide_by="table"), delta=None), "set a delta"),
        (said.SetAdversary(adversary=said.Adversary(decide_by="model"), delta=None), "figures for 'model'"),
        (said.RemovePlan(plan="plan-1"), "one plan must stay"),
        (said.SetColumn(name="nobody", kind="ignored"), "no column 'nobody'"),
        (said.Adopt(plan="plan-1", work="nothing"), "no such plan to adopt"),
        (said.SetGroups(plan="plan-1", groups=[said.Group(name="g", attributes=["nobody"])]), "no attribute"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(
    session: Session, wrong: said.Change, said_so: str
) -> None:
    before = session.document
    with pytest.raises(InputError, match=said_so):
        change(session, wrong)
    assert session.document is before


def test_a_change_whose_figures_fail_changes_nothing(session: Session, monkeypatch) -> None:
    change(session, budget(2.0, "sex"))
    before = session.state()

    def failing(*_given: object, **_named: object) -> None:
        raise InputError("no figures.")

    with monkeypatch.context() as broken:
        broken.setattr(type(session.live), "figures", failing)
        for wrong in (budget(3.0, "sex"), said.SetColumn(name="age", kind="ignored"), said.Undo()):
            with pytest.raises(InputError, match="no figures"):
                change(session, wrong)
    assert session.state() == before
    assert change(session, budget(3.0, "sex")).revision == before.revision + 1


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), "1", 700])
def test_a_budget_is_a_number_that_a_plan_may_have(value: object) -> None:
    with pytest.raises(ValidationError):
        said.SetBudget(plan="plan-1", attributes=["sex"], epsilon=value)


def test_unknown_keys_and_changes_are_refused() -> None:
    for text in ('{"changes": [], "extra": 1}', '{"changes": [{"change": "nonsense"}]}', '{"changes": []}'):
        with pytest.raises(ValidationError):
            said.Changes.model_validate_json(text)


def test_up_to_four_plans_stand_side_by_side(session: Session) -> None:
    change(session, budget(2.0, "sex"))
    for number in (2, 3, 4):
        change(session, said.AddPlan(name=f"Plan {number}", copy_of="plan-1" if number == 2 else None))
    copy, fresh = session.plans()[1:3]
    assert [row.epsilon for row in copy.releases if row.attribute == "sex"] == [2.0]
    assert [row.epsilon for row in fresh.releases if row.attribute == "sex"] == [1.0]
    assert len(session.state().figures) == 4
    with pytest.raises(InputError, match="remove one first"):
        change(session, said.AddPlan(name="one more"))
    change(session, said.RemovePlan(plan=session.document.active))
    assert len(session.plans()) == 3
    assert {item.plan for item in session.state().figures} == {plan.id for plan in session.plans()}


@pytest.mark.parametrize("text", [None, "", "a,b\n1,2\n"])
def test_a_table_that_is_not_what_it_was_is_refused_without_its_folder(
    session: Session, tmp_path: Path, text: str | None
) -> None:
    table = tmp_path / "people.csv"
    table.unlink() if text is None else table.write_text(text, encoding="utf-8")
    before = session.revision
    with pytest.raises(InputError, match=r"people\.csv") as refused:
        change(session, said.SetColumn(name="class", kind="ordinal"))
    assert str(tmp_path) not in str(refused.value)
    assert session.revision == before


def test_a_corrected_column_is_read_anew(session: Session) -> None:
    change(session, said.SetSecrets(secrets=[said.Secret(name="age", limit=1.0)], limit=None))
    update = change(session, said.SetColumn(name="age", kind="ignored"))
    assert update.columns is not None
    assert [column.is_stated for column in update.columns if column.name == "age"] == [True]
    assert "age" not in session.opened.schema
    assert session.document.settings.secrets == []
    update = change(session, said.Undo())
    assert update.columns is not None
    assert session.document.settings.secrets[0].name == "age"


def test_a_state_is_written_and_read_the_same(session: Session) -> None:
    change(session, budget(0.3, "sex"))
    change(session, said.AddPlan(name="<b>other</b>\n", copy_of="plan-1"))
    change(session, said.Undo())
    text = state_text(session.history, "people.csv", session.revision, "key")
    history, file = read_state(text, "the file")
    assert history == session.history
    assert (file.revision, file.key) == (session.revision, "key")
    assert "key" not in json.loads(state_text(session.history, "people.csv", 1))


@pytest.mark.parametrize(
    ("spoil", "said_so"),
    [
        (lambda data: data | {"version": 2}, "reads up to version 1"),
        (lambda data: data | {"surprise": 1}, "surprise"),
        (lambda data: data | {"at": 9}, "does not hold"),
        (lambda data: data | {"steps": []}, "steps"),
        (lambda data: data | {"drafts": []}, "does not hold"),
        (lambda data: data | {"drafts": [data["drafts"][0] | {"choices": {"a": {"epsilon": 0}}}]}, "epsilon"),
        (lambda _: {"version": 1}, "Field required"),
        (lambda _: [], "no studio state"),
    ],
)  # fmt: skip
def test_a_spoilt_state_is_refused(session: Session, spoil, said_so: str) -> None:
    data = json.loads(state_text(session.history, "people.csv", 1))
    with pytest.raises(InputError, match=said_so):
        read_state(json.dumps(spoil(data)), "the file")


def test_a_state_of_another_table_is_refused(session: Session, tmp_path: Path) -> None:
    change(session, budget(0.3, "sex"))
    other = tmp_path / "other.csv"
    other.write_text("a,b\n" + "1,2\n2,1\n1,1\n" * 20, encoding="utf-8")
    with pytest.raises(InputError, match="about another table: other.csv has no column 'sex'"):
        Session.start(Place(str(other)), session.history, open_table(Place(str(other)), {}))
    with pytest.raises(InputError, match="about another table"):
        session_of(other).import_history(session.history)


def test_an_imported_state_can_be_taken_back(session: Session) -> None:
    change(session, budget(0.3, "sex"))
    history, _ = read_state(state_text(session.history, "people.csv", 1), "the file")
    change(session, budget(2.0, "sex"))
    session.import_history(history)
    assert epsilon(session, "sex") == 0.3
    change(session, said.Undo())
    assert epsilon(session, "sex") == 2.0


def test_every_mechanism_of_the_menu_has_figures(session: Session) -> None:
    for name in MENU:
        update = change(
            session, said.SetMechanism(plan="plan-1", attributes=["class", "sex"], mechanism=name)
        )
        assert update.figures[0].problem == ""
    assert [item.name for item in session.state().mechanisms] == list(MENU)


HOSTILE = (
    "</script><script>alert(1)</script>",
    '"; rm -rf "',
    "a,b",
    "--drop",
    "x=1",
    "\u202eright",
    " ",
    "é" * 300,
)


def test_hostile_names_are_names(tmp_path: Path) -> None:
    import csv

    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(HOSTILE)
        rows.writerows(
            [[f"{'<' * (row % 2)}v{(row + at) % 3}" for at in range(len(HOSTILE))] for row in range(90)]
        )
    session = session_of(path)
    names = list(session.opened.schema.names)
    assert len(names) >= len(HOSTILE) - 1
    change(session, *(budget(0.5, name) for name in names))
    state = said.State.model_validate_json(session.state().model_dump_json())
    assert {row.attribute for row in state.plans[0].releases} == set(names)


def test_ten_thousand_values_are_folded_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = [f"v{row % 10_000},{row % 3}" for row in range(20_000)]
    path.write_text("\n".join(["many,few", *lines]) + "\n", encoding="utf-8")
    session = session_of(path)
    sizes = {item.name: item.size for item in session.opened.schema}
    assert sizes.get("many", 0) <= 60
    with pytest.raises(InputError, match=r"have 10003 values together; the studio shows 6000"):
        open_table(Place(str(path), {"max_values": 20_000, "kinds": {"many": "categorical"}}), {})


@pytest.mark.parametrize(
    ("columns", "said_so"),
    [
        (2_000, "has 2000 columns to look at"),
        (500, f"wide.csv has 500 attributes; the studio shows {MOST_ATTRIBUTES}"),
    ],
)
def test_too_many_columns_are_refused_in_words(tmp_path: Path, columns: int, said_so: str) -> None:
    path = tmp_path / "wide.csv"
    names = [f"c{at}" for at in range(columns)]
    rows = [",".join(str((row + at) % 2) for at in range(columns)) for row in range(8)]
    path.write_text("\n".join([",".join(names), *rows]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=said_so):
        open_table(Place(str(path)), {})
    assert len(open_table(Place(str(path), {"columns": names[:3]}), {}).schema) == 3
