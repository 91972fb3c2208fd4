"""From a table to a model in a file, with its accuracy beside what the collection says about the label."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sidelight.foundation.arrays import Positions, Whole
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, unknown
from sidelight.foundation.files import check_overwrite, file_name, json_plain, write_text
from sidelight.foundation.forecasts import Measures
from sidelight.foundation.randomness import derive_seed
from sidelight.foundation.strict import Strict, read_data, versioned
from sidelight.labels.collection import LabelledRows, LabelSettings, Secret
from sidelight.learning.bayes import BayesModel, LabelModel, private_bayes
from sidelight.learning.bayes_trees import AveragedTrees, bayes_trees
from sidelight.learning.cart import private_tree
from sidelight.learning.debiasing import PrivateTargets
from sidelight.learning.decision_tree import DecisionTree, NodeFile
from sidelight.learning.logistic import LogisticModel
from sidelight.learning.statement import Spending, Statement, label_only_statement, spending
from sidelight.learning.tested import OWN, UNPROTECTED, Limit, limit_of, tested, unprotected, verdict
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.protocols.files import AttributeFile, attribute_data
from sidelight.schema import Attribute, Schema
from sidelight.sources import Table

ModelKind = Literal["bayes", "tree", "trees", "blend", "logistic", "boosting"]
MODELS: tuple[ModelKind, ...] = ("bayes", "tree", "trees", "blend", "logistic", "boosting")
KINDS: Mapping[Secret, tuple[ModelKind, ...]] = {
    "both": ("bayes", "tree", "trees"),
    "label": ("blend", "logistic", "boosting", "bayes", "tree"),
    "attributes": ("bayes",),
}
"""What can be learnt where this is secret; the first is the default."""
WITHOUT_FILE = ("blend", "boosting")
"""Models that live in memory only: boosted trees are scikit-learn's own."""
_TREES = 10
MODEL_VERSION = 1


@dataclass(frozen=True, eq=False)
class Learnt:
    """A model of a label, with what it was tested on and what its collection leaks.

    Attributes:
        model: predicts the label from the attributes, both as codes.
        accuracy: the share of right predictions on records that were not collected; `lower` and `upper` are
            the ends of its 95 % interval.
        control: the share of the commonest label among them.
        trained: how many people reported, or helped to learn omega.
        spent: what each round of a tree, or each attribute of Naive Bayes, asked for; none for LabelDP.
        measures: everything measured of "the model" and of the references on these records, by name.
        limit: what no model of these attributes exceeds on these records.
        notes: what else a reader must know; of the run, not of the model, so that no file has them.
    """

    kind: ModelKind
    attributes: tuple[Attribute, ...]
    label: Attribute
    model: LabelModel
    statement: Statement
    accuracy: float
    lower: float
    upper: float
    control: float
    trained: int
    tested: int
    source: str
    measures: Mapping[str, Measures]
    limit: Limit
    spent: tuple[Spending, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def references(self) -> dict[str, float]:
        """The accuracy of the other models on the same records, by name."""
        others = {name: part.find("accuracy") for name, part in self.measures.items() if name != OWN}
        return {name: found.figure.value for name, found in others.items() if found is not None}

    @property
    def verdict(self) -> str:
        """Whether the model is better than always guessing the commonest label, in words."""
        return verdict(self.measures[OWN])

    def to_data(self) -> dict[str, Any]:
        """Return the model and its figures as plain data."""
        return {
            "version": MODEL_VERSION,
            "kind": self.kind,
            "label": attribute_data(self.label),
            "attributes": [attribute_data(attribute) for attribute in self.attributes],
            "statement": json_plain(asdict(self.statement)),
            "sentence": self.statement.sentence(),
            "accuracy": self.accuracy,
            "interval": [self.lower, self.upper],
            "control": self.control,
            "trained": self.trained,
            "tested": self.tested,
            "source": self.source,
            "spent": [asdict(part) for part in self.spent],
            "references": self.references,
            "measures": {name: json_plain(part.to_dict()) for name, part in self.measures.items()},
            "limit": asdict(self.limit),
            "verdict": self.verdict,
            "model": self.model.to_dict(),
        }

    def to_json(self) -> str:
        """Return the model and its figures as JSON; an infinite leakage is the text "infinity"."""
        return json.dumps(self.to_data(), indent=2, ensure_ascii=False, allow_nan=False)

    def write(self, path: str | Path) -> Path:
        """Write the model to a .json file; only a file of Sidelight's is replaced."""
        if Path(path).suffix.lower() != ".json":
            raise InputError(f"{path} must end in .json.")
        if self.kind in WITHOUT_FILE:
            raise InputError(
                f"a model of the kind {self.kind!r} has no file; learn 'logistic', or fit `PrivateLabels` in "
                "Python and keep it as scikit-learn's models are kept."
            )
        check_overwrite(path)
        return write_text(path, self.to_json())

    def predict(self, codes: NDArray[Any]) -> Whole:
        """Return the code of the likeliest label of each coded record."""
        return self.model.predict(codes)


def learn(
    table: Table,
    label: str,
    kind: ModelKind | None = None,
    settings: LabelSettings | None = None,
    tree: TreeSettings | None = None,
    *,
    test_share: float = 0.3,
    compare: bool = False,
    seed: int | None = None,
) -> Learnt:
    """Simulate a collection from a table, learn a model from it and test it on the rest of the records.

    The settings are what is secret, the protocol and its budget, which the `tree` follows. The kind is one of
    `KINDS` for what is secret, the first by default. `test_share` of the records are kept for testing, also
    for a model without any protection; with `compare` for one by LabelDP at the same budget too. Without a
    seed the noise is secure; with one it can be repeated.
    """
    chosen = settings or LabelSettings()
    kind = checked_kind(kind, chosen.secret)
    rows, attributes, target = labelled_rows(table, label)
    train, test = (rows[part] for part in split_rows(len(rows), test_share, seed))
    if len(np.unique(train.labels)) < 2:
        raise InputError(f"all training records have the same {label!r}; use more records.")
    grown = (tree or TreeSettings(scheme="once")).under(chosen)
    model, statement, spent = _fitted(kind, train, chosen, grown, seed, attributes)
    control = float(np.bincount(test.labels.astype(np.int64)).max() / len(test))
    likely = {OWN: model.probabilities(test.codes)}
    if compare and chosen.secret == "both":
        other: ModelKind = "tree" if kind == "trees" else kind
        labeldp, *_ = _fitted(other, train, replace(chosen, protocol="labeldp"), grown, seed)
        likely["LabelDP at the same budget"] = labeldp.probabilities(test.codes)
    likely[UNPROTECTED] = unprotected(train, test, kind, grown.depth)
    measures = {name: tested(part, test, target.values) for name, part in likely.items()}
    figures, sizes, source = _accuracy(model, test), (len(train), len(test)), file_name(table.source.label)
    judged = (*figures, control, *sizes, source, measures, limit_of(test), spent)
    return Learnt(kind, attributes, target, model, statement, *judged)


def checked_kind(kind: ModelKind | None, secret: Secret) -> ModelKind:
    """Return the kind of model, the default where none is named, after checking that it can be learnt."""
    if kind is None:
        return KINDS[secret][0]
    check_choice("model", kind, MODELS)
    if kind not in KINDS[secret]:
        named = ", ".join(KINDS[secret])
        raise InputError(f"the model {kind!r} cannot be learnt where {_SECRET[secret]}; use one of {named}.")
    return kind


_SECRET: Mapping[Secret, str] = {
    "both": "attributes and label are secret",
    "label": "only the label is secret",
    "attributes": "only the attributes are secret",
}


def _fitted(
    kind: ModelKind,
    rows: LabelledRows,
    settings: LabelSettings,
    tree: TreeSettings,
    seed: int | None,
    attributes: Sequence[Attribute] = (),
) -> tuple[LabelModel, Statement, tuple[Spending, ...]]:
    """Return a model, its statement and what was asked for, of the named attributes."""
    if kind == "tree":
        grown = private_tree(rows, settings, tree.under(settings), seed=seed)
        return grown.tree, grown.statement, grown.rounds
    if kind == "trees":
        made = bayes_trees(rows, settings, tree.depth, _TREES, seed=seed)
        return made.model, made.statement, made.spent
    if settings.secret == "label" and kind != "bayes":
        return *_label_only(kind, rows, settings.epsilon, seed), ()
    bayes = private_bayes(rows, settings, seed=seed)
    spent = tuple(
        spending(attribute.name, len(part.reports), [part.response], part.response.label_epsilon)
        for attribute, part in zip(attributes, bayes.reports, strict=False)
        if math.isfinite(part.response.label_epsilon)  # LabelDP promises nothing that could be spent
    )
    return bayes.model, bayes.statement, spent


def _label_only(
    kind: ModelKind, rows: LabelledRows, epsilon: float, seed: int | None
) -> tuple[LabelModel, Statement]:
    """Learn from true attributes and randomised labels."""
    from sidelight.learning.label_only import LEARNERS, BlendModel, Columns, Learner, blended, logistic_model

    noise = derive_seed(seed, "label")
    targets = PrivateTargets.simulated(rows.labels, rows.classes, epsilon, seed=noise)
    columns = Columns.of_codes(rows.codes, rows.sizes, rows.ordered)
    statement = label_only_statement(rows.codes, rows.labels, rows.sizes, targets.selection)
    if kind == "logistic":
        return logistic_model(columns, targets), statement
    chosen: Mapping[str, Learner] = LEARNERS if kind == "blend" else {kind: LEARNERS[kind]}
    return BlendModel(blended(chosen, columns, targets), rows.sizes, rows.classes), statement


def _accuracy(model: LabelModel, test: LabelledRows) -> tuple[float, float, float]:
    """Return the share of right predictions and the ends of its 95 % interval (Wilson 1927)."""
    from scipy.stats import binomtest

    right = int(np.sum(model.predict(test.codes) == test.labels))
    interval = binomtest(right, len(test)).proportion_ci(0.95, method="wilson")
    return right / len(test), float(interval.low), float(interval.high)


def labelled_rows(table: Table, label: str) -> tuple[LabelledRows, tuple[Attribute, ...], Attribute]:
    """Return a table's records with one attribute as the label, the other attributes, and the label."""
    schema: Schema = table.schema
    if label not in schema:
        aside = next((item for item in table.set_aside if item.column == label), None)
        if aside is not None:
            raise InputError(f"the label {label!r} {aside.reason}; choose another column.")
        raise unknown("column", label, schema.names)
    at = schema.index(label)
    others = [i for i in range(len(schema)) if i != at]
    codes = table.codes()
    target = schema.attributes[at]
    attributes = tuple(schema.attributes[i] for i in others)
    sizes = tuple(attribute.size for attribute in attributes)
    ordered = tuple(attribute.kind == "numeric" for attribute in attributes)
    return LabelledRows(codes[:, others], codes[:, at], sizes, target.size, ordered), attributes, target


def split_rows(rows: int, test_share: float, seed: int | None) -> tuple[Positions, Positions]:
    """Return which rows are for training and which for testing, by chance."""
    check_number("test_share", test_share, above=0, below=1)
    if seed is not None:
        check_whole("seed", seed, at_least=0)
    order = np.random.default_rng(seed).permutation(rows)
    kept = round(rows * (1 - test_share))  # the rest is for testing, so that nothing is counted twice
    if kept < 1 or kept >= rows:
        raise InputError(f"{rows} records are too few to train and to test on; use more.")
    return order[:kept], order[kept:]


class _TreeFile(Strict):
    nodes: list[NodeFile]

    def made(self) -> LabelModel:
        return DecisionTree.from_data(self.nodes)


class _BayesFile(Strict):
    prior: list[float]
    conditionals: list[list[list[float]]]
    strength: Annotated[float, Field(gt=0, le=1)] = 1.0
    offsets: list[Annotated[float, Field(allow_inf_nan=False)]] | None = None

    def made(self) -> LabelModel:
        tables = tuple(np.array(part, dtype=np.float64) for part in self.conditionals)
        added = None if self.offsets is None else np.array(self.offsets, dtype=np.float64)
        return BayesModel(np.array(self.prior), tables, self.strength, added)


class _TreesFile(Strict):
    trees: Annotated[list[_TreeFile], Field(min_length=1)]

    def made(self) -> LabelModel:
        return AveragedTrees(tuple(DecisionTree.from_data(part.nodes) for part in self.trees))


class _LogisticFile(Strict):
    intercept: list[float]
    weights: list[list[list[float]]]

    def made(self) -> LabelModel:
        tables = tuple(np.array(part, dtype=np.float64) for part in self.weights)
        return LogisticModel(np.array(self.intercept), tables)


_MODEL_FILES = {"tree": _TreeFile, "bayes": _BayesFile, "trees": _TreesFile, "logistic": _LogisticFile}


class _LearntFile(Strict):
    version: int
    kind: ModelKind
    label: AttributeFile
    attributes: list[AttributeFile]
    statement: dict[str, bool | float | str | None]
    sentence: str
    accuracy: float | None
    interval: list[float]
    control: float | None
    trained: int
    tested: int
    source: str
    spent: list[dict[str, Any]]
    references: dict[str, float]
    measures: dict[str, dict[str, Any]] | None = None
    limit: dict[str, float | None] | None = None
    verdict: str | None = None
    model: _TreeFile | _BayesFile | _TreesFile | _LogisticFile


def read_model(path: str | Path) -> LabelModel:
    """Read the model of a file that `Learnt.write` wrote, strictly."""
    file = versioned(_LearntFile, read_data(path), str(path), MODEL_VERSION, "model file")
    sizes = [len(attribute.values) for attribute in file.attributes]
    try:
        model = file.model.made()
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    is_kind = type(file.model) is _MODEL_FILES.get(file.kind)
    if not is_kind or not model.fits(sizes, len(file.label.values)):
        raise InputError(f"{path} is damaged: the model does not fit its attributes; write it again.")
    return model
