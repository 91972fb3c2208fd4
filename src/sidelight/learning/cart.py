"""Decision trees from private reports: all rounds simulated, or LabelDP (CLLDP, section 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.foundation.randomness import derive_seed
from sidelight.labels.devices import LabelledRows, LabelSettings, settle_omegas
from sidelight.labels.leakage import belief_curve, next_leakage
from sidelight.learning.answering import Answers, answer
from sidelight.learning.decision import DecisionTree
from sidelight.learning.growing import NodeTable, decide
from sidelight.learning.questions import Question
from sidelight.learning.rounds import Round, TreeRounds, TreeSettings, response_width
from sidelight.learning.statement import Spending, Statement, labeldp_of, private_statement, spending
from sidelight.mechanisms.subset import SubsetSelection

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeFit:
    """A tree, and how it was grown.

    Attributes:
        tree: the tree.
        state: the collector's last state; None for LabelDP.
        statement: what the reports say about the label.
        rounds: what each round asked for; none for LabelDP.
    """

    tree: DecisionTree
    state: TreeRounds | None
    statement: Statement
    rounds: tuple[Spending, ...] = ()


def private_tree(
    rows: LabelledRows, settings: LabelSettings, tree: TreeSettings, *, seed: int | None = None
) -> TreeFit:
    """Simulate all rounds of the collection and grow a tree from the answers.

    The promise and the protocol of `settings` hold; those of `tree` must be the same.
    """
    if settings.protocol == "labeldp":
        return label_only_tree(rows, settings.epsilon, tree, seed=seed)
    if settings.epsilon != tree.epsilon or settings.protocol != tree.protocol:
        raise InputError("the tree's settings must have the epsilon and the protocol of the collection.")
    omegas, left = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"))
    kept = rows[np.flatnonzero(left)]
    state = TreeRounds.start(tree, rows.sizes, rows.classes, omegas)
    groups = np.zeros(len(kept), dtype=np.int64)
    truth = [(1.0, 1.0)]
    spent = []
    for _ in track(range(tree.depth), "rounds"):
        if state.is_done:
            break
        asked = state.ask()
        answers = answer(asked, kept, groups, seed=derive_seed(seed, f"round/{asked.number}"))
        truth = _true_ledgers(asked, rows, truth)
        state = state.receive(asked, answers.aggregates)
        groups = answers.groups
        spent.append(_round_spending(asked, answers, state))
    promise = max(group.ledger.label_epsilon for group in state.groups)
    found = math.log(max(truth[group][0] for group in np.unique(groups)))
    statement = private_statement(rows, settings, omegas, promise, (found, "certified"))
    return TreeFit(state.tree, state, statement, tuple(spent))


def _round_spending(asked: Round, answers: Answers, state: TreeRounds) -> Spending:
    """Return what a round asked for, of those who answered."""
    choices = [asked.choices[group][place] for group, place in answers.aggregates]
    people = sum(part.reports for part in answers.aggregates.values())
    leakage = max(state.groups[group].ledger.label_epsilon for group in np.unique(answers.groups))
    used = [choice.response for choice in choices if choice.response is not None]
    if not used:
        return Spending(f"round {asked.number}", 0, (0.0, 0.0), (0, 0), (1.0, 1.0), leakage)
    return spending(f"round {asked.number}", people, used, leakage)


def _true_ledgers(
    asked: Round, rows: LabelledRows, before: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return PL and the product of factors of each group after the round, with the records' own omega."""
    curves: dict[Question, Array] = {}
    after = []
    for (leakage, product), options in zip(before, asked.choices, strict=True):
        for choice in options:
            if choice.question is None or choice.response is None:
                after.append((leakage, product))
                continue
            if choice.question not in curves:
                curves[choice.question] = _true_curve(choice.question, asked.tree, rows)
            factor, width = float(choice.response.factor), response_width(choice.response)
            curve = curves[choice.question]
            omega = float(curve[min(width, len(curve)) - 1])
            after.append((next_leakage(leakage, product, factor, omega), product * factor))
    return after


def _true_curve(question: Question, tree: DecisionTree, rows: LabelledRows) -> Array:
    """Return omega(k) of the question's cells among the records."""
    pairs = rows.labels.astype(np.int64) * question.cells + question.code(rows.codes, tree)
    counts = np.bincount(pairs, minlength=rows.classes * question.cells).reshape(rows.classes, -1)
    mass = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, mass, out=np.full(counts.shape, np.nan), where=mass > 0)
    return belief_curve(shares)


def label_only_tree(
    rows: LabelledRows, epsilon: float, settings: TreeSettings, *, seed: int | None = None
) -> TreeFit:
    """Grow a tree from true attributes and labels through subset selection (LabelDP)."""
    selection = SubsetSelection(rows.classes, epsilon)
    reports = selection.randomise(rows.labels, seed=derive_seed(seed, "label"))
    held = np.zeros((len(rows), rows.classes))
    held[np.arange(len(rows))[:, None], reports.values.astype(np.int64)] = 1
    q = float(selection.mark_if_other)
    gap = float(selection.mark_if_true) - q
    weights = (held - q) / gap / len(rows)
    noise = q * (1 - q) / gap**2 / len(rows)
    tree = DecisionTree.start(rows.classes)
    for number in range(settings.depth):
        at = tree.route(rows.codes)
        for node in tree.open_nodes:
            members = np.flatnonzero(at == node)
            tables = _label_only_tables(rows, weights, noise, members)
            last = number + 1 == settings.depth
            tree = decide(tree, node, tables, last=last, caution=settings.caution)
    found = labeldp_of(rows, epsilon)
    statement = Statement("labeldp", epsilon, math.inf, None, "not used", found, "exact", found)
    return TreeFit(tree, None, statement)


def _label_only_tables(
    rows: LabelledRows, weights: Array, noise: float, members: NDArray[np.intp]
) -> Mapping[int, NodeTable]:
    found = {}
    for attribute, size in enumerate(rows.sizes):
        cells = np.zeros((size, rows.classes))
        for label in range(rows.classes):
            chosen = rows.codes[members, attribute]
            cells[:, label] = np.bincount(chosen, weights=weights[members, label], minlength=size)
        found[attribute] = NodeTable(cells, max(noise * len(members) / len(rows) / size, 1e-12))
    return found
