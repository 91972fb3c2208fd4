"""A model that was learnt from a real collection: nobody has the records, so nothing is tested on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sidelight.learning.bayes import LabelModel
from sidelight.learning.learnt import MODEL_VERSION, ModelKind
from sidelight.learning.statement import Spending
from sidelight.protocols.files import attribute_data
from sidelight.schema import Attribute


@dataclass(frozen=True, eq=False)
class CollectedModel:
    """A model with what its collection promised; `read_model` reads its file.

    Attributes:
        said: the protocol, its budget, and what a person's report says at most; see `Statement`.
        trained: how many people reported.
        source: what collected it, in words.
        spent: what each round or attribute asked for.
    """

    kind: ModelKind
    attributes: tuple[Attribute, ...]
    label: Attribute
    model: LabelModel
    said: Mapping[str, Any]
    trained: int
    source: str
    spent: tuple[Spending, ...] = ()

    @property
    def sentence(self) -> str:
        """What the collection promised, in words."""
        return (
            f"One person's report says at most {self.said['promise']} about the label and at most "
            f"{self.said['value']} about the attribute's value, in nats; omega: {self.said['omega_source']}. "
            "The model was not tested: nobody has the records."
        )

    def to_data(self) -> dict[str, Any]:
        """Return the model as plain data, in the form of `Learnt.to_data`, without what only a test tells."""
        return {
            "version": MODEL_VERSION,
            "kind": self.kind,
            "label": attribute_data(self.label),
            "attributes": [attribute_data(attribute) for attribute in self.attributes],
            "statement": dict(self.said),
            "sentence": self.sentence,
            "accuracy": None,
            "interval": [],
            "control": None,
            "trained": self.trained,
            "tested": 0,
            "source": self.source,
            "spent": [asdict(part) for part in self.spent],
            "references": {},
            "measures": None,
            "limit": None,
            "verdict": None,
            "model": self.model.to_dict(),
        }
