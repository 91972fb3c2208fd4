"""A decision tree in rounds: the collector asks, people answer, the tree grows (CLLDP, Algorithm 4).

`TreeRounds` is the collector's state, frozen and kept as a file between rounds. `ask` says what each group of
people may be asked; a person draws one of the group's choices, answers it (or keeps silent) and belongs to
the group that the choice leads to (`learning.participants`); `receive` takes the added-up answers. People of
one group have the same history, hence the same ledger.

Two schemes. "published": a person keeps a growing set of attributes and reports its combination of values;
the candidate rule adds the last attribute of a branch that the set misses. "leaves": a person keeps one
attribute and reports, in every round, the open node that the record has come to and that attribute's value;
no answer is then useless to the tree, and the cells stay few. Both spend by the same ledger. A third one,
"turns", is like "leaves", but everyone answers in one round only, drawn at the start, with the whole budget:
noise falls faster with the budget than with the number of people, so this is the most accurate of the three.
The scheme "once" has no rounds, hence no state: see `learning.bayes_trees`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole
from sidelight.labels import BasicResponse, HeadsResponse, LabelLedger, LabelSettings, Omega
from sidelight.labels.budgets import RULES, BudgetRule
from sidelight.labels.leakage import check_label_budget, heads_factor
from sidelight.labels.omega import WidthRule, chosen_width, heads_variance
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.questions import Question, product_question
from sidelight.learning.splits import Evidence, decide, node_tables
from sidelight.mechanisms.mechanism import Aggregate

Scheme = Literal["once", "turns", "leaves", "published"]
SCHEMES = ("once", "turns", "leaves", "published")
Key = tuple[int, int]
_LEAST_BUDGET = 1e-9
"""A round with a smaller budget is silent: its answers would say nothing."""


@dataclass(frozen=True)
class TreeSettings:
    """How the tree is grown.

    Attributes:
        epsilon: the promise about the label, all rounds together.
        depth: the number of rounds, and the longest path.
        budgets: "closed" or "published" (eq. (15)); see `labels.budgets`.
        k: "search", "published" or a number.
        averaging: of groups with the same question: by "precision", or "equal" as published.
        caution: see `splits.decide`; 0 is the published stop rule.
    """

    epsilon: float = 1.0
    depth: int = 5
    scheme: Scheme = "turns"
    budgets: BudgetRule = "closed"
    protocol: Literal["khr", "basic"] = "khr"
    k: WidthRule | int = "search"
    averaging: Literal["precision", "equal"] = "precision"
    caution: float = 3.0

    def __post_init__(self) -> None:
        check_label_budget(self.epsilon)
        check_whole("depth", self.depth, at_least=1, at_most=30)
        check_choice("scheme", self.scheme, SCHEMES)
        check_choice("budgets", self.budgets, RULES)
        check_choice("protocol", self.protocol, ("khr", "basic"))
        check_choice("averaging", self.averaging, ("precision", "equal"))
        check_number("caution", self.caution, at_least=0)

    def under(self, settings: LabelSettings) -> TreeSettings:
        """Return the same with the budget, the protocol and k of a collection; LabelDP has no rounds."""
        protocol: Literal["khr", "basic"] = "basic" if settings.protocol == "basic" else "khr"
        return replace(self, epsilon=settings.epsilon, protocol=protocol, k=settings.k)

    def ledger(self) -> LabelLedger:
        """Return the ledger of someone who has reported nothing yet."""
        return LabelLedger(self.epsilon, 1 if self.scheme == "turns" else self.depth)


@dataclass(frozen=True)
class Group:
    """People with the same history.

    Attributes:
        drawn: the attributes they have drawn, in order; SL in the paper.
        question: the last one they answered.
        width: k, fixed in the first round of the published scheme.
        turn: the only round in which they answer; None if they answer in all.
    """

    ledger: LabelLedger
    drawn: tuple[int, ...] = ()
    question: Question | None = None
    width: int | None = None
    turn: int | None = None

    def fits(self, settings: TreeSettings, sizes: Sequence[int], nodes: int) -> bool:
        """Whether the group can be one of a tree with these settings, attributes and nodes."""
        start = settings.ledger()
        is_kept = (self.ledger.epsilon, self.ledger.rounds) == (start.epsilon, start.rounds)
        is_known = all(attribute < len(sizes) for attribute in self.drawn)
        return is_kept and is_known and (self.question is None or self.question.fits(sizes, nodes))


@dataclass(frozen=True)
class Choice:
    """What a person may draw: the attribute, the question (None for a silent round) and how to answer it.

    The attribute is None where nothing is left to draw. `omega` is the belief that the response assumes,
    `turn` the only round in which a person who draws this answers; None for every round.
    """

    attribute: int | None
    question: Question | None = None
    response: HeadsResponse | BasicResponse | None = None
    omega: float = 1.0
    turn: int | None = None


@dataclass(frozen=True)
class Round:
    """What the collector publishes in a round, from number 1: the tree so far and each group's choices."""

    number: int
    tree: DecisionTree
    choices: tuple[tuple[Choice, ...], ...]

    def next_group(self, group: int, choice: int) -> int:
        """Return the number of the group that a choice leads to."""
        return sum(len(options) for options in self.choices[:group]) + choice

    def response(self, group: int, place: int) -> HeadsResponse | BasicResponse:
        """Return how a group answers a choice; refused where nobody was asked it."""
        options = self.choices[group] if 0 <= group < len(self.choices) else ()
        response = options[place].response if 0 <= place < len(options) else None
        if response is None:
            raise InputError(f"nobody was asked choice {place} of group {group}, but it has answers.")
        return response


@dataclass(frozen=True, eq=False)
class TreeRounds:
    """The collector's state after some rounds; make one with `TreeRounds.start`.

    It has the tree so far, the adversary's belief for each attribute, the groups of people by number, and
    what the answers to each question say.
    """

    settings: TreeSettings
    sizes: tuple[int, ...]
    classes: int
    omegas: tuple[Omega, ...]
    number: int
    tree: DecisionTree
    groups: tuple[Group, ...]
    evidence: Mapping[Question, Evidence] = field(default_factory=dict)

    @classmethod
    def start(
        cls, settings: TreeSettings, sizes: Sequence[int], classes: int, omegas: Sequence[Omega]
    ) -> TreeRounds:
        """Return the state before the first round: one group, an open root."""
        if settings.scheme == "once":
            raise InputError("the scheme 'once' has no rounds; use `bayes_trees`, or the scheme 'turns'.")
        if len(omegas) != len(sizes):
            raise InputError(
                f"there must be one omega for each of {len(sizes)} attributes, got {len(omegas)}."
            )
        group = Group(settings.ledger())
        tree = DecisionTree.start(check_whole("classes", classes, at_least=2))
        return cls(settings, tuple(sizes), classes, tuple(omegas), 0, tree, (group,))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to ask."""
        return self.number >= self.settings.depth or not self.tree.open_nodes

    def ask(self) -> Round:
        """Return the next round; the same one however often it is asked for."""
        if self.is_done:
            raise InputError("the tree is finished; there is no round left to ask.")
        return self._next

    @cached_property
    def _next(self) -> Round:
        maker = _published_choices if self.settings.scheme == "published" else _leaf_choices
        return Round(self.number + 1, self.tree, tuple(maker(self, group) for group in self.groups))

    def receive(self, asked: Round, answers: Mapping[Key, Aggregate]) -> TreeRounds:
        """Return the state after a round, from the added-up reports of each answered (group, choice)."""
        if asked.number != self.number + 1:
            raise InputError(f"round {self.number + 1} is due, got the answers of round {asked.number}.")
        if asked != self.ask():  # answers to another question would be read as answers to this one
            raise InputError(f"round {asked.number} was changed after it was asked; use the published one.")
        for group, place in answers:
            asked.response(group, place)  # refused where nobody was asked
        groups, evidence = [], dict(self.evidence)
        equal = self.settings.averaging == "equal"
        for number, (before, options) in enumerate(zip(self.groups, asked.choices, strict=True)):
            for place, choice in enumerate(options):
                groups.append(_moved(before, choice))
                answer = answers.get((number, place))
                if choice.question is None or choice.response is None or answer is None or not answer.reports:
                    continue
                nothing = Evidence(np.zeros((choice.question.cells, self.classes)), 0.0, 0.0)
                known = evidence.get(choice.question, nothing)
                variance = choice.response.total_variance(answer.reports) / known.total.size
                evidence[choice.question] = known.plus(choice.response.joint(answer), variance, equal=equal)
        tree, last = self.tree, asked.number == self.settings.depth
        defer = self.settings.scheme != "published" and not last
        for node in self.tree.open_nodes:
            tables = node_tables(evidence, tree, node, len(self.sizes))
            tree = decide(tree, node, tables, last=last, caution=self.settings.caution, defer=defer)
        return replace(self, number=asked.number, tree=tree, groups=tuple(groups), evidence=evidence)


def _moved(group: Group, choice: Choice) -> Group:
    """Return the group after the choice."""
    drawn = group.drawn if choice.attribute is None else (*group.drawn, choice.attribute)
    turn = choice.turn if group.turn is None else group.turn
    if choice.question is None or choice.response is None:
        ledger = group.ledger if turn is not None else group.ledger.silent()
        return replace(group, ledger=ledger, drawn=drawn, turn=turn)
    response = choice.response
    ledger = group.ledger.after(float(response.factor), choice.omega, response.budget)
    return Group(ledger, drawn, choice.question, response.most_values, turn)


def _leaf_choices(state: TreeRounds, group: Group) -> tuple[Choice, ...]:
    """Everyone keeps the attribute, and the turn if there is one, drawn in the first round."""
    attributes = range(len(state.sizes)) if not group.drawn else group.drawn[:1]
    turns: Sequence[int | None] = [group.turn]
    if state.settings.scheme == "turns" and not group.drawn:
        turns = range(1, state.settings.depth + 1)
    nodes = state.tree.open_nodes if state.number else ()  # in the first round everyone is at the root
    choices = []
    for attribute, turn in product(attributes, turns):
        if turn is not None and turn != state.number + 1:
            choices.append(Choice(attribute, turn=turn))
            continue
        question = Question((attribute,), (tuple(range(state.sizes[attribute])),), nodes)
        width = _best_width(state, group, question, attribute)
        choices.append(replace(_choice(state, group, attribute, question, width), turn=turn))
    return tuple(choices)


def _published_choices(state: TreeRounds, group: Group) -> tuple[Choice, ...]:
    """Return the choices by the candidate rule, SC in the paper."""
    choices = []
    for attribute, free in candidates(state.tree, group.drawn, len(state.sizes)):
        drawn = (*group.drawn, attribute)
        question = product_question(state.sizes, drawn, state.tree, free, state.classes)
        if question == group.question:
            choices.append(Choice(attribute))
            continue
        width = group.width or _best_width(state, group, question, attribute)
        width = min(width, question.cells * state.classes - 1)
        choices.append(_choice(state, group, attribute, question, width))
    return tuple(choices) or (Choice(None),)


def candidates(tree: DecisionTree, drawn: Sequence[int], attributes: int) -> list[tuple[int, int]]:
    """Return the attributes a person may draw next, each with the one to be asked in full.

    CLLDP, section 6.1: for every open branch from which the drawn attributes differ in exactly one that is
    not on the branch, the branch's last attribute; if there is none, every attribute not drawn yet.
    """
    if not drawn:
        return [(attribute, attribute) for attribute in range(attributes)]
    missing: dict[int, int] = {}
    for number in tree.open_nodes:
        branch = [step.attribute for step in tree.nodes[number].path]
        rest = list((Counter(drawn) - Counter(branch)).elements())
        if len(rest) == 1 and rest[0] not in branch:
            missing.setdefault(branch[-1], rest[0])
    if missing:
        return sorted(missing.items())
    return [(attribute, attribute) for attribute in range(attributes) if attribute not in drawn]


def question_omega(question: Question, omegas: Sequence[Omega], width: int) -> float:
    """Return a belief that is not below that of k of the question's cells; 1 where k is 0, any number.

    Cells that differ project to values of each attribute that is asked in full, so k cells weigh at most what
    k of its values do; the least of these is taken (CLLDP, section 7.3, takes one from the round before).
    """
    return min((omegas[i].at(width) for i in question.full), default=1.0) if width else 1.0


def _choice(state: TreeRounds, group: Group, attribute: int, question: Question, width: int) -> Choice:
    is_basic = state.settings.protocol == "basic"
    omega = 1.0 if is_basic else question_omega(question, state.omegas, width)
    budget = group.ledger.budget(omega, state.settings.budgets)
    if budget <= _LEAST_BUDGET:
        if state.number > 0:
            return Choice(attribute)
        raise InputError(
            f"`epsilon` of {state.settings.epsilon:g} is too small for a depth of {state.settings.depth}: "
            f"the first round would have {budget:.3g}; raise epsilon, or lower the depth."
        )
    response: HeadsResponse | BasicResponse = (
        BasicResponse(question.cells, state.classes, budget)
        if is_basic
        else HeadsResponse(question.cells, state.classes, budget, width, omega)
    )
    return Choice(attribute, question, response, omega)


def _best_width(state: TreeRounds, group: Group, question: Question, attribute: int) -> int:
    """Return k: by the rule of the settings, with the budget that each k would have."""
    pairs, rule = question.cells * state.classes, state.settings.k
    if state.settings.protocol == "basic":
        return 1
    if rule != "search":
        curve = state.omegas[attribute].curve
        return chosen_width(rule, pairs, group.ledger.budget(float(curve[0]), state.settings.budgets), curve)
    most = min(max(len(state.omegas[i].curve) for i in question.full), pairs - 1)
    changing = [question_omega(question, state.omegas, width) for width in range(1, most + 1)]
    omegas = np.ones(pairs - 1)  # beyond the number of values omega is 1
    omegas[: len(changing)] = changing
    distinct, place = np.unique(omegas, return_inverse=True)
    budgets = [group.ledger.budget(omega, state.settings.budgets) for omega in distinct.tolist()]
    factors = [heads_factor(budget, omega) for budget, omega in zip(budgets, distinct.tolist(), strict=True)]
    return 1 + int(heads_variance(pairs, np.arange(1, pairs), np.array(factors)[place]).argmin())
