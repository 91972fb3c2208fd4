"""Learners: rounds that keep their promise by enumeration, resumable state, attacks, the command."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from labelled_people import known_omegas, people
from sidelight.foundation.arrays import to_simplex
from sidelight.foundation.errors import InputError
from sidelight.labels import Omega
from sidelight.labels.collection import (
    LabelledRows,
    LabelSettings,
    deal,
    make_response,
)
from sidelight.labels.leakage import LabelRound, rounds_leakage
from sidelight.learning.bayes import bayes_from_reports, private_bayes
from sidelight.learning.cart import private_tree
from sidelight.learning.decision_tree import DecisionTree, NodeFile, Step, TreeNode, tree_text
from sidelight.learning.diagram import tree_svg
from sidelight.learning.files import load_state, publish_round, read_round, save_state
from sidelight.learning.learnt import labelled_rows, learn, read_model
from sidelight.learning.participants import answer
from sidelight.learning.questions import LARGEST_QUESTION, Question, product_question
from sidelight.learning.statement import Statement
from sidelight.learning.synthetic import private_synthetic
from sidelight.learning.tree_rounds import Round, TreeRounds, TreeSettings, candidates
from sidelight.schema import categorical

SCHEMES = ("turns", "leaves", "published")


def accuracy(model, rows: LabelledRows) -> float:
    return float(np.mean(model.probabilities(rows.codes).argmax(axis=1) == rows.labels))


def all_combinations(rows: LabelledRows) -> tuple[np.ndarray, np.ndarray]:
    """Every combination of values as codes, and Pr(combination | label)."""
    codes = np.array(list(product(*(range(size) for size in rows.sizes))), dtype=np.uint16)
    flat = np.ravel_multi_index(tuple(rows.codes.astype(np.intp).T), rows.sizes)
    counts = np.zeros((rows.classes, len(codes)))
    np.add.at(counts, (rows.labels.astype(np.intp), flat), 1.0)
    return codes, counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("budgets", ["closed", "published"])
@pytest.mark.parametrize("protocol", ["khr", "basic"])
def test_all_reports_of_all_rounds_keep_the_promise(scheme, budgets, protocol) -> None:
    """Every history a person can have in a small collection, every report of every round."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (3000, 2))
    labels = np.where(rng.random(3000) < 0.7, codes[:, 0] ^ codes[:, 1], codes[:, 0])
    rows = LabelledRows(codes.astype(np.uint16), labels.astype(np.uint16), (2, 2), 2)
    combinations, conditionals = all_combinations(rows)
    epsilon, depth = 1.5, 2
    settings = TreeSettings(epsilon, depth, scheme, budgets, protocol, caution=0)
    state = TreeRounds.start(settings, rows.sizes, 2, known_omegas(rows))
    histories: list[list[LabelRound]] = [[]]
    groups = np.zeros(len(rows), dtype=np.int64)
    while not state.is_done:
        asked = state.ask()
        histories = [
            history + _asked(choice, asked, combinations)
            for history, options in zip(histories, asked.choices, strict=True)
            for choice in options
        ]
        answers = answer(asked, rows, groups, seed=5)
        state, groups = state.receive(asked, answers.aggregates), answers.groups
    checked = 0
    for history, group in zip(histories, state.groups, strict=True):
        if history:
            exact = rounds_leakage(conditionals, history).value
            assert exact <= group.ledger.label_epsilon + 1e-9
            assert exact <= epsilon + 1e-9
            checked += 1
    assert checked >= 2
    assert max(group.ledger.label_epsilon for group in state.groups) == pytest.approx(epsilon, rel=0.35)


def _asked(choice, asked: Round, combinations: np.ndarray) -> list[LabelRound]:
    if choice.question is None:
        return []
    return [LabelRound(choice.question.code(combinations, asked.tree), choice.response.channel)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rounds_can_be_saved_and_resumed(scheme, tmp_path: Path) -> None:
    rows = people(4000)
    settings = TreeSettings(6.0, 3, scheme)
    straight = TreeRounds.start(settings, rows.sizes, 2, known_omegas(rows))
    resumed = straight
    groups = np.zeros(len(rows), dtype=np.int64)
    while not straight.is_done:
        asked = straight.ask()
        answers = answer(asked, rows, groups, seed=7)
        straight = straight.receive(asked, answers.aggregates)
        resumed = load_state(save_state(resumed, tmp_path / "state.npz"))
        published = read_round(publish_round(resumed.ask(), tmp_path / "round.json"))
        assert published == asked
        again = answer(published, rows, groups, seed=7)
        resumed = resumed.receive(published, again.aggregates)
        groups = answers.groups
    assert resumed.tree == straight.tree
    assert resumed.groups == straight.groups
    assert len(straight.tree.nodes) > 1
    with pytest.raises(InputError, match="no round left"):
        resumed.ask()


def test_damaged_files_and_wrong_rounds_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "state.npz"
    damaged.write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        load_state(damaged)
    with pytest.raises(InputError, match="cannot be read"):
        load_state(tmp_path / "absent.npz")
    (tmp_path / "round.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        read_round(tmp_path / "round.json")
    rows = people(500)
    state = TreeRounds.start(TreeSettings(1.0, 2), rows.sizes, 2, known_omegas(rows))
    asked = state.ask()
    with pytest.raises(InputError, match="round 1 is due"):
        state.receive(replace(asked, number=2), {})


def test_the_candidate_rule_is_that_of_the_paper() -> None:
    """Fig. 2 of CLLDP: attributes u, w, y, z are 0 to 3; the root asks for w."""
    root = DecisionTree((TreeNode((Step(1, 0, True),), (0.5, 0.5), 1.0, is_open=True),))
    assert candidates(root, (3,), 4) == [(1, 3)]
    assert [attribute for attribute, _ in candidates(root, (1,), 4)] == [0, 2, 3]
    second = DecisionTree(
        (
            TreeNode((Step(1, 0, True), Step(0, 1, True)), (0.5, 0.5), 0.5, is_open=True),
            TreeNode((Step(1, 0, False), Step(1, 1, True)), (0.5, 0.5), 0.5, is_open=True),
        )
    )
    assert candidates(second, (3, 1), 4) == [(0, 3), (1, 3)]
    assert candidates(second, (0, 1), 4) == [(1, 0)]
    assert candidates(second, (), 4) == [(i, i) for i in range(4)]


def test_who_has_answered_the_same_question_keeps_silent_and_spends_nothing() -> None:
    rows = people(3000)
    settings = TreeSettings(4.0, 4, "published", caution=0)
    state = TreeRounds.start(settings, rows.sizes, 2, known_omegas(rows))
    groups, silent = np.zeros(len(rows), dtype=np.int64), 0
    while not state.is_done:
        asked = state.ask()
        answers = answer(asked, rows, groups, seed=2)
        before, state, groups = state, state.receive(asked, answers.aggregates), answers.groups
        place = 0
        for group, options in zip(before.groups, asked.choices, strict=True):
            for choice in options:
                after = state.groups[place].ledger
                if choice.question is None:
                    silent += 1
                    assert after.spent == group.ledger.spent
                    assert after.label_epsilon == group.ledger.label_epsilon
                place += 1
    assert silent > 0


def test_a_question_reads_the_table_of_a_node(rng) -> None:
    sizes = (3, 4, 2)
    codes = np.stack([rng.integers(0, size, 5000) for size in sizes], axis=1).astype(np.uint16)
    labels = rng.integers(0, 2, 5000)
    path = (Step(0, 1, False), Step(2, 0, True))
    tree = DecisionTree.start(2)
    question = product_question(sizes, (0, 1, 2), tree, 1, 2)
    joint = np.zeros((question.cells, 2))
    np.add.at(joint, (question.code(codes, tree), labels), 1.0)
    assert question.covers(path, 0, 1)
    table, added = question.table(joint, path, 0, 1)
    here = (codes[:, 0] != 1) & (codes[:, 2] == 0)
    expected = np.zeros((4, 2))
    np.add.at(expected, (codes[here, 1], labels[here]), 1.0)
    assert np.array_equal(table, expected)
    assert added == 2
    assert not Question((1,), ((0, 1, 2, 3),)).covers(path, 0, 1)


def test_large_questions_are_asked_more_coarsely() -> None:
    sizes = (60, 50, 40)
    tree = DecisionTree.start(2).split(0, 0, 7, (np.array([0.1, 0.2]), np.array([0.3, 0.4])), last=False)
    question = product_question(sizes, (0, 1, 2), tree, 2, 2)
    assert question.cells * 2 <= LARGEST_QUESTION
    assert question.full == (1, 2)
    assert question.covers((Step(0, 7, True),), 1, 2)
    assert not question.covers((Step(0, 8, True),), 1, 2)


def test_naive_bayes_learns_and_says_what_it_leaks() -> None:
    train, test = people(20_000), people(5_000, seed=2)
    fit = private_bayes(train, LabelSettings(2.0, omega="known"), seed=1)
    assert accuracy(fit.model, test) > 0.85
    assert fit.statement.leakage <= 2.0 + 1e-9
    assert fit.statement.is_kept
    learnt = private_bayes(train, LabelSettings(2.0), seed=1)
    assert learnt.statement.confidence == 0.95
    assert learnt.statement.is_kept
    only = private_bayes(train, LabelSettings(2.0, "labeldp"), seed=1)
    assert not only.statement.is_kept
    assert only.statement.leakage == only.statement.labeldp > 2.0
    assert accuracy(only.model, test) > 0.85
    assert "above the budget" in only.statement.sentence()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_tree_learns_and_keeps_its_promise(scheme) -> None:
    train, test = people(40_000), people(5_000, seed=2)
    fit = private_tree(train, LabelSettings(6.0, omega="known"), TreeSettings(6.0, 2, scheme), seed=1)
    assert accuracy(fit.tree, test) > 0.85
    assert fit.tree.nodes[0].attribute == 0
    assert fit.statement.leakage <= fit.statement.promise + 1e-9
    assert fit.statement.is_kept


def test_a_branch_never_asks_again_for_what_it_knows() -> None:
    """At a small budget noise would make impossible values look useful."""
    rows = people(3000)
    for seed in range(5):
        tree = private_tree(rows, LabelSettings(1.0), TreeSettings(1.0, 5, caution=0), seed=seed).tree
        for node in tree.nodes:
            held = [step.attribute for step in node.path if step.holds]
            refused = [(step.attribute, step.value) for step in node.path if not step.holds]
            assert len(set(held)) == len(held)
            assert not [step for step in node.path if step.holds and (step.attribute, step.value) in refused]
            assert node.attribute not in held
            assert (node.attribute, node.value) not in refused


def test_the_closed_form_is_not_less_accurate_than_eq_15() -> None:
    """Eight seeds of depth 2 at a small budget; the means differ by the last round only."""
    train, test = people(20_000), people(5_000, seed=2)
    found = {}
    for budgets in ("closed", "published"):
        tree = TreeSettings(2.0, 2, "published", budgets, caution=0)
        fits = [private_tree(train, LabelSettings(2.0, omega="known"), tree, seed=seed) for seed in range(8)]
        found[budgets] = np.mean([accuracy(fit.tree, test) for fit in fits])
    assert found["closed"] >= found["published"] - 0.005


def test_a_tree_is_printed_drawn_and_kept() -> None:
    fit = private_tree(people(20_000), LabelSettings(6.0, omega="known"), TreeSettings(6.0, 2), seed=1)
    attributes = [categorical(f"<a{i}>", [str(v) for v in range(3)]) for i in range(3)]
    label = categorical("label", ["no", "yes"])
    text = tree_text(fit.tree, attributes, label)
    assert text.count("yes:") == text.count("no:") == sum(n.children is not None for n in fit.tree.nodes)
    svg = tree_svg(fit.tree, attributes, label)
    assert "&lt;a0&gt;" in svg
    assert "<a0>" not in svg
    assert svg.count("<rect") == len(fit.tree.nodes)
    assert (
        DecisionTree.from_data([NodeFile(**entry) for entry in json.loads(json.dumps(fit.tree.to_data()))])
        == fit.tree
    )


def test_a_trees_settings_follow_the_collection() -> None:
    tree = TreeSettings(depth=3, caution=0.0)
    assert tree.under(LabelSettings(2.0, "basic", k=4)) == TreeSettings(
        2.0, 3, protocol="basic", k=4, caution=0.0
    )
    assert tree.under(LabelSettings(2.0, "labeldp")).protocol == "khr"


def test_to_simplex_returns_the_nearest_distribution(rng) -> None:
    cells = rng.normal(0.1, 0.3, 12)
    nearest = to_simplex(cells, 0.7)
    assert nearest.sum() == pytest.approx(0.7)
    assert nearest.min() >= 0
    assert np.allclose(to_simplex(cells, 0.7, shift=False), nearest, atol=1e-15)
    for shift in (True, False):
        huge = to_simplex(np.array([1e18, -1e18, 3e17]), shift=shift)
        assert huge.tolist() == [1.0, 0.0, 0.0]
    others = rng.dirichlet(np.ones(12), 2000) * 0.7
    assert ((others - cells) ** 2).sum(axis=1).min() >= ((nearest - cells) ** 2).sum() - 1e-12


def test_synthetic_records_follow_the_marginals() -> None:
    """60,000 drawn records: shares within 0.01 of the model's, more than 4 standard errors."""
    rows = people(40_000)
    fit = private_synthetic(rows, LabelSettings(6.0, omega="known"), seed=1)
    drawn = fit.model.sample(60_000, seed=1)
    assert fit.model.parents.count(None) < 3
    shares = np.bincount(drawn.labels, minlength=2) / len(drawn)
    assert np.allclose(shares, fit.model.bayes.prior, atol=0.01)
    agree = float(np.mean(drawn.codes[:, 0] == drawn.codes[:, 1]))
    assert agree == pytest.approx(float(np.mean(rows.codes[:, 0] == rows.codes[:, 1])), abs=0.05)
    assert fit.statement.leakage <= 6.0 + 1e-9
    with pytest.raises(InputError, match="train on them instead"):
        private_synthetic(rows, LabelSettings(1.0, "labeldp"))


def test_dealing_is_uniform_and_repeatable() -> None:
    """30,000 people in 3 groups: each within 5 standard deviations (false alarm below 2e-6)."""
    found = deal(30_000, 3, seed=1, stream="x")
    assert np.all(np.abs(np.bincount(found) - 10_000) < 5 * math.sqrt(30_000 * 2 / 9))
    assert np.array_equal(found, deal(30_000, 3, seed=1, stream="x"))
    assert not np.array_equal(deal(1000, 3, seed=None, stream="x"), deal(1000, 3, seed=None, stream="x"))


def test_bad_input_says_what_to_change() -> None:
    rows = people(200)
    with pytest.raises(InputError, match="too small for a depth of 5"):
        private_tree(rows, LabelSettings(1e-18, omega="known"), TreeSettings(1e-18, 5, "leaves"))
    with pytest.raises(InputError, match="label is constant"):
        LabelledRows(rows.codes, rows.labels * 0, rows.sizes, 1)
    with pytest.raises(InputError, match="at least one attribute"):
        LabelledRows(rows.codes[:, :0], rows.labels, (), 2)
    for omega in (0.0, 1.2, "guess"):
        with pytest.raises(InputError, match="`omega` must be"):
            LabelSettings(1.0, omega=omega)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one curve for each attribute"):
        private_bayes(rows, LabelSettings(1.0, omega=[Omega.given(1.0, 3)]))
    with pytest.raises(InputError, match="no reports to learn from"):
        bayes_from_reports([])
    with pytest.raises(InputError, match="`depth` must be"):
        TreeSettings(1.0, 0)
    with pytest.raises(InputError, match="'search', 'published'"):
        make_response(LabelSettings(1.0, k="best"), 3, 2, Omega.given(1.0, 3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no column 'diagnosis'"):
        labelled_rows(sl.example("titanic"), "diagnosis")
    with pytest.raises(InputError, match="same epsilon|epsilon and the protocol"):
        private_tree(rows, LabelSettings(1.0), TreeSettings(2.0))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = people(3000)
    columns = {f"a{i}": [f"v{code}" for code in rows.codes[:, i]] for i in range(3)}
    path = tmp_path / "people.parquet"
    same = {"same": ["x"] * len(rows)}
    pq.write_table(
        pa.table({**columns, **same, "label": ["no" if v == 0 else "yes" for v in rows.labels]}), path
    )
    return path


def test_the_command_writes_a_model_with_its_leakage(run, table: Path, tmp_path: Path) -> None:
    for model in ("tree", "bayes"):
        path = tmp_path / f"{model}.json"
        code, out, err = run(
            "learn", table, "--label", "label", "--epsilon", 4, "--model", model, "-o", path, "--seed", 1
        )
        assert (code, err) == (0, "")
        assert "Label leakage" in out
        assert ("Decision tree" if model == "tree" else "Naive Bayes") + " for label from" in out
        assert "within the budget of 4" in out
        stored = json.loads(path.read_text())
        assert stored["statement"]["leakage"] <= 4.0 + 1e-9
        assert stored["accuracy"] > 0.8
        model_back = read_model(path)
        rows, _, _ = labelled_rows(sl.read(str(table)), "label")
        assert accuracy(model_back, rows) > 0.8
    drawing = tmp_path / "tree.svg"
    assert (
        run(
            "learn",
            table,
            "--label",
            "label",
            "--epsilon",
            4,
            "--model",
            "tree",
            "--draw",
            drawing,
            "--seed",
            1,
        )[0]
        == 0
    )
    assert drawing.read_text().startswith("<svg")
    page = tmp_path / "model.html"
    code, out, _ = run("learn", table, "--label", "label", "--epsilon", 4, "--report", page, "--seed", 1)
    assert code == 0
    assert out.startswith("The model is better than always guessing the commonest label.")
    assert f"Written: {page}" in out
    assert "without protection" in page.read_text()


def test_the_command_fails_where_the_promise_is_not_kept(run, table: Path) -> None:
    code, out, _ = run(
        "learn", table, "--label", "label", "--model", "bayes", "--protocol", "labeldp", "--json"
    )
    assert code == 1
    assert json.loads(out)["statement"]["promise"] == "infinity"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "diagnosis"], "no column 'diagnosis'"),
        (["--label", "same"], "the label 'same' is constant; choose another column"),
        (["--label", "label", "--omega", "1.5"], "`omega` must be above 0 and at most 1"),
        (
            ["--label", "label", "--omega", "much"],
            "`omega` must be a number, 'auto' or 'learnt' or 'known', got 'much'",
        ),
        (
            ["--label", "label", "--k", "many"],
            "`k` must be a whole number, 'search' or 'published', got 'many'",
        ),
        (["--label", "label", "--seed", "-1"], "`seed` must be a whole number of at least 0, got -1"),
        (["--label", "label", "--model", "bayes", "--depth", "3"], "--depth is for a tree"),
        (["--label", "label", "--model", "bayes", "--scheme", "turns"], "--scheme is for a tree"),
        (["--label", "label", "--model", "bayes", "--budgets", "closed"], "--budgets is for a tree"),
        (["--label", "label", "--model", "forest"], "`model` must be one of"),
        (["--label", "label", "--epsilon", "0"], "`epsilon` must be"),
        (["--label", "label", "--model", "tree", "--scheme", "odd"], "`scheme` must be one of"),
        (["--label", "label", "--test-share", "1"], "`--test-share` must be"),
        (["--label", "label", "--model", "bayes", "--draw", "t.svg"], "--draw is for a tree"),
        (["--label", "label", "--protocol", "basic", "--k", "3"], "--k is for kHR"),
        (["--label", "label", "--protocol", "labeldp", "--omega", "known"], "--omega is for kHR"),
        (["--label", "label", "--omega", "0.9", "--confidence", "0.9"], "--confidence is that of a learnt"),
        (["--label", "label", "--protocol", "basic", "--confidence", "0.9"], "--confidence is that of a"),
        (["--label", "label", "--report", "model.pdf"], "must end in .html"),
        (["--label", "label", "--model", "tree", "--budgets", "closed"], "--budgets is for answers in every"),
        (
            ["--label", "label", "--model", "tree", "--secret", "label", "--scheme", "turns"],
            "--scheme is for trees of reports of both",
        ),
        (["--label", "label", "--omega", "0.3"], "since the likeliest of 3 values"),
    ],
)
def test_bad_options_are_one_line(run, table: Path, options, message) -> None:
    code, _, err = run("learn", table, *options)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", [("--model", "forest"), ("--seed", "-1"), ("--k", "many")])
def test_options_are_checked_before_the_table_is_read(run, option: tuple[str, str]) -> None:
    _, _, err = run("learn", "none.csv", "--label", "label", *option)
    assert f"`{option[0][2:]}` must be" in err


def test_a_seed_is_checked_in_python_too(table: Path) -> None:
    for refused in (
        lambda: learn(sl.read(str(table)), "label", seed=-1),
        lambda: sl.sources.survey(100, seed=-1),
    ):
        with pytest.raises(sl.InputError, match="`seed` must be a whole number of at least 0"):
            refused()


def test_columns_that_were_set_aside_are_told(run, table: Path, tmp_path: Path) -> None:
    asked = ["learn", table, "--label", "label", "--epsilon", 4, "--model", "bayes", "--seed", 1]
    page = tmp_path / "model.html"
    assert "Column 'same' is constant; set aside." in run(*asked, "--report", page)[1]
    assert "Column &#39;same&#39; is constant; set aside." in page.read_text()
    said = json.loads(run(*asked, "--json")[1])["notes"]
    assert "Column 'same' is constant; set aside." in said
    assert "Bins and alphabets were taken from the data as if they were public." in said


def test_a_leak_without_limit_is_said_in_words() -> None:
    said = Statement("khr", 1.0, 1.0, None, "given", 1.0, "exact", math.inf)
    assert said.sentence().endswith("LabelDP would leak without limit.")
    assert replace(said, labeldp=2.0).sentence().endswith("LabelDP would leak 2.000.")


def test_adult_is_fast_enough(data: Path) -> None:
    """A depth-5 tree in under 5 s of CPU, Naive Bayes in under 1 s, compiled loops loaded before."""
    rows, _, _ = labelled_rows(sl.read(str(data / "adult.parquet"), drop=["split"]), "income")
    private_bayes(rows, LabelSettings(1.0), seed=1)
    start = time.process_time()
    fit = private_bayes(rows, LabelSettings(1.0), seed=2)
    middle = time.process_time()
    grown = private_tree(rows, LabelSettings(4.0, omega="known"), TreeSettings(4.0), seed=2)
    end = time.process_time()
    assert middle - start < 1
    assert end - middle < 5
    assert fit.statement.is_kept
    assert grown.statement.is_kept
    assert math.isinf(fit.statement.labeldp)


def test_learn_tests_on_records_that_were_not_collected() -> None:
    found = learn(sl.example("titanic"), "survived", "bayes", LabelSettings(4.0, omega="known"), seed=1)
    assert found.trained + found.tested == 2201
    assert found.lower <= found.accuracy <= found.upper
    assert 0.5 < found.control < 0.8
