"""What comes of a label collection's sums: omegas, the tree so far, tables for an operator, the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelight.estimation.second_phase import FirstSums
from sidelight.foundation.arrays import Array
from sidelight.foundation.files import json_number
from sidelight.labels import (
    AttributeSums,
    LabelResponse,
    LabelSample,
    LabelSettings,
    Omega,
    joint_confidence,
    learn_omegas,
)
from sidelight.labels.collection import make_response
from sidelight.learning.bayes import BayesModel, LabelModel, bayes_from_reports
from sidelight.learning.collected import CollectedModel
from sidelight.learning.statement import Spending, spending
from sidelight.learning.tree_rounds import TreeRounds
from sidelight.mechanisms import Aggregate
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.protocols.records import RecordSums
from sidelight.schema import Schema
from sidelight.service.label_questions import asked_keys, asked_questions, omega_responses, plain_responses

if TYPE_CHECKING:
    from sidelight.service.label_design import LabelDesign


@dataclass(frozen=True, eq=False)
class Collected:
    """The sums of the rounds so far of a label design, with the omegas that they were asked with.

    The omegas are None for LabelDP, which has none, and until they are learnt.
    """

    design: LabelDesign
    omegas: tuple[Omega, ...] | None
    parts: tuple[FirstSums, ...]

    @property
    def for_model(self) -> tuple[FirstSums, ...]:
        """Those after the round that omega was learnt from."""
        return self.parts[self.design.learns_omega :]


def omegas_of(schema: Schema, settings: LabelSettings, sums: RecordSums) -> tuple[Omega, ...]:
    """Return the omegas that the sums of their round tell."""
    samples = omega_samples(schema, settings, sums)
    selection = SubsetSelection(schema.sizes[-1], settings.epsilon)
    told = LabelSample(selection, sums.parts[-1])
    return tuple(learn_omegas(samples, told, confidence=settings.confidence))


def omega_samples(schema: Schema, settings: LabelSettings, sums: RecordSums) -> list[AttributeSums]:
    """Return what those told of the attributes whom omega was learnt from."""
    responses = zip(omega_responses(schema, settings.epsilon), sums.parts, strict=False)
    return [AttributeSums(i, response, part) for i, (response, part) in enumerate(responses)]


def tree_state(collected: Collected) -> TreeRounds:
    """Return the collector's state after the rounds, as `learning.tree_rounds` has it."""
    design = collected.design
    sizes, classes = design.schema.sizes[:-1], design.schema.sizes[-1]
    state = TreeRounds.start(design.tree, sizes, classes, collected.omegas or ())
    for part in collected.for_model:
        asked = state.ask()
        answers = dict(zip(asked_keys(asked), part.sums.parts, strict=True))
        state = state.receive(asked, answers)
    return state


def told_of_model(collected: Collected) -> list[AttributeSums]:
    """Return what the round of Naive Bayes told of each attribute with the label."""
    design, schema = collected.design, collected.design.schema
    (part,) = collected.for_model
    if collected.omegas is None:
        responses = plain_responses(design.settings, schema)
        counts = [Aggregate(part.sums.people, table.reshape(-1)) for table in part.pairs.values()]
    else:
        sizes = zip(schema.sizes[:-1], collected.omegas, strict=True)
        responses = [make_response(design.settings, n, schema.sizes[-1], omega) for n, omega in sizes]
        counts = list(part.sums.parts)
    each = zip(responses, counts, strict=True)
    return [AttributeSums(i, response, added) for i, (response, added) in enumerate(each)]


def model_of(collected: Collected) -> LabelModel:
    """Return the model that the rounds so far lead to."""
    return tree_state(collected).tree if collected.design.kind == "tree" else bayes_of(collected)


def bayes_of(collected: Collected) -> BayesModel:
    """Return the Naive Bayes that the rounds so far lead to."""
    design, told = collected.design, told_of_model(collected)
    if design.learns_omega and design.tables == "shrunken":  # as published they do not count twice
        told += omega_samples(design.schema, design.settings, collected.parts[0].sums)
    ordered = [attribute.kind == "numeric" for attribute in design.schema.attributes[:-1]]
    return bayes_from_reports(told, tables=design.tables, ordered=ordered)


def _asked_last(collected: Collected) -> tuple[list[Sequence[str]], list[AttributeSums]]:
    """Return the cells of the last round's questions, and what was told about each with the label."""
    design, last = collected.design, collected.parts[-1].sums
    schema = last.protocol.schema
    cells: list[Sequence[str]] = [attribute.values for attribute in schema.attributes[:-1]]
    if design.learns_omega and len(collected.parts) == 1:
        return cells, omega_samples(design.schema, design.settings, last)
    if design.kind == "bayes":
        return cells, told_of_model(collected)
    before = Collected(design, collected.omegas, collected.parts[:-1])
    asked = asked_questions(tree_state(before).ask())
    each = zip(asked, last.parts, strict=True)
    return cells, [AttributeSums(i, response, part) for i, ((_, response), part) in enumerate(each)]


def label_figures(collected: Collected, confidence: float) -> dict[str, Any]:
    """Return what the last round tells: tables of cell and label with their errors, and the model so far.

    `signal` is the squared distance from independence in units of the noise, for each degree of freedom:
    about 1 is noise alone, and `chance` says how often noise alone would go as far, nearly.
    `forged` is how far a cell moves, at most, for each report in a hundred that is forged.
    """
    design, last = collected.design, collected.parts[-1].sums
    cells, told = _asked_last(collected)
    names = zip(design.schema.names, cells, told, strict=False)
    tables = [_table(name, values, item) for name, values, item in names]
    omegas = None if collected.omegas is None else [json_number(float(o.curve[0])) for o in collected.omegas]
    learnt = _told_of(collected) if collected.for_model else None
    return {
        "people": last.people, "confidence": confidence, "label": design.schema.names[-1],
        "labels": list(design.schema.attributes[-1].values), "tables": tables, "omegas": omegas,
        "kind": design.kind, "learnt": learnt,
    }  # fmt: skip


def _table(name: str, cells: Sequence[str], told: AttributeSums) -> dict[str, Any]:
    from scipy.special import chdtrc

    if not told.count:
        return {"attribute": name, "people": 0, "cells": list(cells), "shares": None}
    joint = told.joint()
    marginal, prior = (_shares(joint.sum(axis=axis)) for axis in (1, 0))
    errors = np.sqrt(told.response.cell_variance(marginal, prior) / told.count)
    away = (joint - np.outer(marginal, prior)) / errors
    p, q = map(float, told.response.mechanism.mark_rates)
    total, freedom = float(np.sum(away**2)), math.prod(size - 1 for size in joint.shape)
    return {
        "attribute": name, "people": told.count, "cells": list(cells), "shares": joint.tolist(),
        "standard_errors": errors.tolist(), "signal": total / freedom,
        "chance": float(chdtrc(freedom, total)), "forged": json_number(0.01 / (p - q)),
    }  # fmt: skip


def _shares(weights: Array) -> Array:
    kept = np.maximum(weights, 1e-6)
    return np.asarray(kept / kept.sum())


def _told_of(collected: Collected) -> dict[str, Any]:
    """Return what can be told of the model so far without records to test it on.

    A tree's own accuracy comes from the reports that it was learnt from, so it flatters.
    """
    if collected.design.kind == "bayes":
        bayes = bayes_of(collected)
        return {"commonest": float(bayes.prior.max()), "own_accuracy": None, "model": bayes.to_dict()}
    tree = tree_state(collected).tree
    leaves = [node for node in tree.nodes if node.children is None]
    whole = max(sum(node.mass for node in leaves), 1e-12)
    own = sum(node.mass * max(node.shares) for node in leaves) / whole
    return {
        "leaves": len(leaves), "open": len(tree.open_nodes), "depth": tree.depth,
        "commonest": max(tree.nodes[0].shares), "own_accuracy": min(own, 1.0), "model": tree.to_dict(),
    }  # fmt: skip


def model_data(collected: Collected, task: str) -> dict[str, Any]:
    """Return the finished model as plain data, as its file has it."""
    design, settings = collected.design, collected.design.settings
    model, spent, promise, value = model_of(collected), *_spent(collected)
    source, confidence = joint_confidence(collected.omegas or ())
    said = {
        "protocol": settings.protocol, "epsilon": settings.epsilon, "promise": json_number(promise),
        "confidence": confidence, "omega_source": source or "not used", "secret": settings.secret,
        "value": json_number(value),
    }  # fmt: skip
    *attributes, label = design.schema.attributes
    people = sum(part.sums.people for part in collected.parts)
    made = CollectedModel(design.kind, tuple(attributes), label, model, said, people, f"task {task}", spent)
    return made.to_data()


def _spent(collected: Collected) -> tuple[tuple[Spending, ...], float, float]:
    """Return what each round asked for, what one person's report says of the label, and of the value."""
    design, settings = collected.design, collected.design.settings
    spent, promises, values = [], [0.0], [0.0]

    def add(asked: str, people: int, responses: Sequence[LabelResponse]) -> None:
        promise = max(_promise(response, settings) for response in responses)
        if math.isfinite(promise):
            spent.append(spending(asked, people, responses, promise))
        promises.append(promise)
        values.append(max(response.value_epsilon for response in responses))

    if design.learns_omega:
        sizes = omega_responses(design.schema, settings.epsilon)
        add("omega", collected.parts[0].sums.people, sizes)
    if design.kind == "bayes":
        for name, told in zip(design.schema.names, told_of_model(collected), strict=False):
            add(name, told.count, [told.response])
        return tuple(spent), max(promises), max(values)
    for number, part in enumerate(collected.for_model):
        before = Collected(design, collected.omegas, collected.parts[: number + design.learns_omega])
        responses = [response for _, response in asked_questions(tree_state(before).ask())]
        add(f"round {number + 1}", part.sums.people, responses)
    return tuple(spent), max(promises), max(values)


def _promise(response: LabelResponse, settings: LabelSettings) -> float:
    if settings.secret == "label":
        return response.mechanism.epsilon  # of the label's report, beside the public attributes
    return response.label_epsilon
