"""Decision trees from private reports: all rounds simulated, or LabelDP (CLLDP, section 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.foundation.randomness import derive_seed
from sidelight.labels.collection import LabelledRows, LabelSettings, settle_omegas
from sidelight.labels.leakage import belief_curve, next_leakage, row_shares
from sidelight.learning.bayes_trees import bayes_trees
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.participants import Answers, answer
from sidelight.learning.questions import Question
from sidelight.learning.splits import Evidence, decide
from sidelight.learning.statement import (
    Spending,
    Statement,
    label_only_statement,
    labeldp_statement,
    private_statement,
    spending,
)
from sidelight.learning.tree_rounds import Round, TreeRounds, TreeSettings
from sidelight.mechanisms.subset import SubsetSelection


@dataclass(frozen=True, eq=False)
class TreeFit:
    """A tree, what the reports say about the label, and how it was grown.

    The collector's last state is None for LabelDP, which has no rounds either; else they say what each asked
    for.
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
    if settings.secret == "attributes":
        raise InputError("a tree's rounds ask for the label too; learn Naive Bayes, or use secret='both'.")
    if settings.protocol == "labeldp":
        grown = label_only_tree(rows, settings.epsilon, tree, seed=seed)
        if settings.secret == "both":
            return grown
        said = label_only_statement(
            rows.codes, rows.labels, rows.sizes, SubsetSelection(rows.classes, settings.epsilon)
        )
        return replace(grown, statement=said)
    if tree.scheme == "once":
        made = bayes_trees(rows, settings, tree.depth, seed=seed)
        if not isinstance(made.model, DecisionTree):
            raise InputError("one tree was asked for.")
        return TreeFit(made.model, None, made.statement, made.spent)
    return _tree_of_rounds(rows, settings, tree, seed)


def _tree_of_rounds(
    rows: LabelledRows, settings: LabelSettings, tree: TreeSettings, seed: int | None
) -> TreeFit:
    """Simulate one round of questions for every level of the tree."""
    if settings.epsilon != tree.epsilon or settings.protocol != tree.protocol:
        raise InputError("the tree's settings must have the epsilon and the protocol of the collection.")
    settled = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"))
    omegas, kept = settled.omegas, settled.rows
    state = TreeRounds.start(tree, rows.sizes, rows.classes, omegas)
    groups = np.zeros(len(kept), dtype=np.int64)  # before the first round nobody has a history
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
    leakage = math.log(max(truth[group][0] for group in np.unique(groups)))
    # All that someone's answers say about the record, by the product of their factors.
    value = math.log(max(group.ledger.product for group in state.groups))
    statement = private_statement(rows, settings, omegas, promise, (leakage, "certified"), value)
    return TreeFit(state.tree, state, statement, tuple(spent))


def _round_spending(asked: Round, answers: Answers, state: TreeRounds) -> Spending:
    """Return what a round asked for, of those who answered."""
    choices = [asked.choices[group][place] for group, place in answers.aggregates]
    people = sum(part.reports for part in answers.aggregates.values())
    leakage = max(state.groups[group].ledger.label_epsilon for group in np.unique(answers.groups))
    used = [choice.response for choice in choices if choice.response is not None]
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
                cells = choice.question.code(rows.codes, asked.tree)
                shares = row_shares(rows.counts(cells, choice.question.cells))
                curves[choice.question] = belief_curve(shares)
            factor, curve = float(choice.response.factor), curves[choice.question]
            omega = float(curve[min(choice.response.most_values, len(curve)) - 1])
            after.append((next_leakage(leakage, product, factor, omega), product * factor))
    return after


def label_only_tree(
    rows: LabelledRows, epsilon: float, settings: TreeSettings, *, seed: int | None = None
) -> TreeFit:
    """Grow a tree from true attributes and labels through subset selection (LabelDP)."""
    selection = SubsetSelection(rows.classes, epsilon)
    reports = selection.randomise(rows.labels, seed=derive_seed(seed, "label"))
    p, q = map(float, selection.mark_rates)
    gap = p - q
    weights = (selection.marked(reports) - q) / gap / len(rows)
    noise = q * (1 - q) / gap**2 / len(rows)
    tree = DecisionTree.start(rows.classes)
    for number in range(settings.depth):
        at = tree.route(rows.codes)
        for node in tree.open_nodes:
            tables = _label_only_tables(rows, weights, noise, np.flatnonzero(at == node))
            tree = decide(tree, node, tables, last=number + 1 == settings.depth, caution=settings.caution)
    return TreeFit(tree, None, labeldp_statement(rows, epsilon))


def _label_only_tables(
    rows: LabelledRows, weights: Array, noise: float, members: Positions
) -> Mapping[int, Evidence]:
    tables = {}
    for attribute, size in enumerate(rows.sizes):
        chosen = rows.codes[members, attribute]
        cells: Array = np.stack([np.bincount(chosen, weight, size) for weight in weights[members].T], axis=1)
        # No variance may be 0: tables are weighted by its inverse.
        tables[attribute] = Evidence(cells, 1.0, max(noise * len(members) / len(rows) / size, 1e-12))
    return tables
