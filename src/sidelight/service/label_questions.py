"""What the rounds of a label collection ask: protocols of pairs of a value and the label.

kHR is subset selection of the pair, and the basic solution unary encoding of it; so a round is the collection
of one pair a person, drawn at random, as `protocols.Sample` has it. In a round of a tree the value is the
cell of the question: the node that the record has come to, with the attribute's value. LabelDP sends the
attributes as they are and the label by itself, and the service counts them together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sidelight.foundation.arrays import AnyCodes, Whole
from sidelight.labels import (
    HeadsResponse,
    LabelOnlyResponse,
    LabelResponse,
    LabelSettings,
    Omega,
    sample_response,
)
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.questions import Question
from sidelight.learning.tree_rounds import Group, Round, TreeRounds, TreeSettings
from sidelight.mechanisms import Reports
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.groups import ReportedGroup, make_group
from sidelight.protocols.records import RecordReports
from sidelight.schema import Attribute, Schema, categorical
from sidelight.service.course import Pair, PairCounts

LABEL_PART = 5
"""One in so many of those whom omega is learnt from reports the label alone."""


def pair_group(schema: Schema, name: str, response: LabelResponse) -> ReportedGroup:
    """Return an attribute with the label, which is the last of the schema, reported through a response."""
    names = [name, schema.names[-1]]
    if response.name == "basic":
        return make_group(schema, names, "sue", response.budget)
    return make_group(schema, names, "ss", response.mechanism.nominal_budget, {"width": response.width})


def pairs_protocol(schema: Schema, responses: Sequence[LabelResponse]) -> Sample:
    """Return the round in which everyone reports one attribute with the label."""
    named = zip(schema.names[:-1], responses, strict=True)
    return Sample(schema, tuple(pair_group(schema, name, response) for name, response in named))


def omega_responses(schema: Schema, epsilon: float) -> list[HeadsResponse]:
    """Return how those respond whom omega is learnt from."""
    return [sample_response(size, schema.sizes[-1], epsilon) for size in schema.sizes[:-1]]


def omega_protocol(schema: Schema, epsilon: float) -> Sample:
    """Return the round that omega is learnt from: a fifth report the label alone, the others a pair."""
    responses = omega_responses(schema, epsilon)
    pairs = [pair_group(schema, n, r) for n, r in zip(schema.names[:-1], responses, strict=True)]
    alone = make_group(schema, [schema.names[-1]], "ss", epsilon)
    shares = [LABEL_PART - 1] * len(pairs) + [len(pairs)]
    return Sample(schema, (*pairs, alone), tuple(shares))


def label_only_protocol(schema: Schema, epsilon: float) -> Split:
    """Return LabelDP: every attribute as it is, the label through subset selection."""
    shown = [make_group(schema, [name], "identity", None) for name in schema.names[:-1]]
    return Split(schema, (*shown, make_group(schema, [schema.names[-1]], "ss", epsilon)))


def label_only_pairs(schema: Schema, epsilon: float) -> PairCounts:
    """Return what LabelDP counts: how often each label is in a set beside each value of an attribute."""
    *names, label = schema.names
    classes = schema.sizes[-1]
    shapes = {(name, label): (schema[name].size, classes) for name in names}

    def count(reports: RecordReports) -> dict[Pair, Whole]:
        sets = np.atleast_2d(reports.parts[-1].values)
        counted = {}
        for (name, _), part in zip(shapes, reports.parts, strict=False):
            rows = np.concatenate([part.values[:, None].astype(np.uint16), sets], axis=1)
            response = LabelOnlyResponse(schema[name].size, classes, epsilon)
            counted[name, label] = response.aggregate(Reports(rows)).sums.reshape(shapes[name, label])
        return counted

    return PairCounts(shapes, count)


def turn_round(
    settings: TreeSettings, schema: Schema, omegas: Sequence[Omega], turn: int, tree: DecisionTree
) -> Round:
    """Return what a tree's round asks of those whose turn it is, from the tree so far and the omegas alone.

    Whoever answers once has spent nothing before, so that nothing else counts; devices work out the same.
    """
    sizes, classes = schema.sizes[:-1], schema.sizes[-1]
    state = TreeRounds.start(settings, sizes, classes, omegas)
    if turn > 1:
        groups = tuple(Group(settings.ledger(), (a,), turn=turn) for a in range(len(sizes)))
        state = TreeRounds(settings, sizes, classes, tuple(omegas), turn - 1, tree, groups)
    return state.ask()


def asked_keys(asked: Round) -> list[tuple[int, int]]:
    """Return which choices of which groups are answered in a round, in the order of the attributes."""
    return [
        (group, place)
        for group, options in enumerate(asked.choices)
        for place, choice in enumerate(options)
        if choice.response is not None
    ]


def asked_questions(asked: Round) -> list[tuple[Question, LabelResponse]]:
    """Return the questions of a round, each with how it is answered."""
    choices = [asked.choices[group][place] for group, place in asked_keys(asked)]
    return [(c.question, c.response) for c in choices if c.question is not None and c.response is not None]


def tree_protocol(schema: Schema, asked: Round) -> Sample:
    """Return the round of a tree in which everyone whose turn it is reports one cell with the label."""
    questions = asked_questions(asked)
    cells = [_cells(a, q) for a, (q, _) in zip(schema.attributes[:-1], questions, strict=True)]
    return pairs_protocol(Schema((*cells, schema.attributes[-1])), [response for _, response in questions])


def _cells(attribute: Attribute, question: Question) -> Attribute:
    if not question.nodes:
        return attribute
    places = [*(f"node {node}" for node in question.nodes), "elsewhere"]
    return categorical(
        attribute.name, [f"{place}: {value}" for place in places for value in attribute.values]
    )


def coded_cells(records: AnyCodes, asked: Round) -> AnyCodes:
    """Return the cells and the label of records, as the round's protocol takes them."""
    cells = [question.code(records[:, :-1], asked.tree) for question, _ in asked_questions(asked)]
    return np.column_stack([*cells, records[:, -1]]).astype(np.uint16)


def plain_responses(settings: LabelSettings, schema: Schema) -> list[LabelResponse]:
    """Return the responses of a collection without omegas: LabelDP's."""
    return [LabelOnlyResponse(size, schema.sizes[-1], settings.epsilon) for size in schema.sizes[:-1]]
