"""Label collections as tasks: Naive Bayes in one round, a tree in as many as it is deep, omega before both.

Each device answers one round, once, with its whole budget: where omega is learnt, some of them that round;
of a tree everyone draws a turn (the scheme "turns" of `learning.tree_rounds`). Everything that a later round
asks, and the model in the end, is computed from the sums of the closed rounds alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from sidelight.estimation.second_phase import FirstSums
from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.errors import InputError, check_choice, invalid
from sidelight.foundation.strict import Strict
from sidelight.labels import LabelSettings, Omega, WidthRule
from sidelight.labels.collection import Secret, make_response
from sidelight.learning.bayes import TABLES, TableRule
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.tree_rounds import Round as Asked
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.ledger import Question
from sidelight.mechanisms.exact import LARGEST_SIZE
from sidelight.mechanisms.longitudinal import Memory
from sidelight.protocols.files import AttributeFile, attribute_data, attribute_from
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports, check_same
from sidelight.schema import Schema
from sidelight.service import label_questions as asking
from sidelight.service.answering import charge_of, drawn_place, takes_first
from sidelight.service.course import Course, Earlier, PairCounts, learnt_from
from sidelight.service.label_basis import OMEGA, Basis, OmegaFile, omegas_data, worded
from sidelight.service.label_results import Collected, label_figures, model_data, omegas_of, tree_state
from sidelight.service.rounds import Round

Kind = Literal["bayes", "tree"]
KINDS = ("bayes", "tree")


@dataclass(frozen=True, eq=False)
class LabelDesign(Course):
    """A model of a label, learnt from one report of each person.

    Attributes:
        schema: the attributes, and the label as the last of them.
        kind: "bayes" or "tree".
        settings: what is secret, the budget and the protocol. Omega is a number, one for each attribute, or
            "learnt" from a share of the people in a round of its own.
        depth: of the tree, and its number of rounds.
        caution: see `learning.splits.decide`.
        tables: of Naive Bayes, see `learning.bayes`.
    """

    opens_itself: ClassVar[bool] = True
    counted: ClassVar[str] = "the rounds of its label design"
    schema: Schema
    kind: Kind = "bayes"
    settings: LabelSettings = field(default_factory=lambda: LabelSettings(omega=1.0))
    depth: int = 3
    caution: float = 3.0
    tables: TableRule = "shrunken"

    def __post_init__(self) -> None:
        check_choice("model", self.kind, KINDS)
        check_choice("tables", self.tables, TABLES)
        if len(self.schema) < 2:
            raise InputError("a label collection needs at least one attribute beside the label, got none.")
        if constant := [attribute.name for attribute in self.schema if attribute.size < 2]:
            raise InputError(f"{constant[0]!r} has one value, which says nothing; leave it out.")
        settings = self.settings
        if settings.protocol == "valuedp":
            raise InputError(
                "a service does not collect reports whose label is public yet; take secret 'both' or 'label'."
            )
        if self.kind == "tree" and settings.protocol == "labeldp":
            raise InputError("a tree's rounds are for kHR and the basic solution; learn 'bayes' by LabelDP.")
        if settings.protocol == "khr" and isinstance(settings.omega, str) and settings.omega != "learnt":
            wanted = "a number, one omega for each attribute, or 'learnt': nobody knows the records here"
            raise invalid("omega", wanted, settings.omega)
        self._check_pairs()
        _ = self.tree, self.first

    def _check_pairs(self) -> None:
        """Raise unless every round can be asked, however the tree grows, before anyone answers the first."""
        *attributes, label = self.schema.attributes
        largest = max(attributes, key=lambda attribute: attribute.size)
        deepest = 1
        if self.kind == "tree" and self.tree.depth > 1:  # its open nodes, and all others as one
            sizes = math.prod(attribute.size for attribute in attributes)
            deepest = min(2 ** (self.tree.depth - 1), sizes) + 1
        if deepest * largest.size * label.size > LARGEST_SIZE:
            nodes = f", at up to {deepest} places of a tree of depth {self.depth}" if deepest > 1 else ""
            way = "merge values, or grow less deep" if nodes else "merge values"
            raise InputError(
                f"{largest.name!r} has {largest.size} values and {label.name!r} {label.size}{nodes}: more "
                f"than {LARGEST_SIZE} cells of a question; {way}."
            )

    @cached_property
    def tree(self) -> TreeSettings:
        """How the tree is grown: everyone answers in one round, drawn at the start."""
        plain = TreeSettings(depth=self.depth, scheme="turns", caution=self.caution)
        return plain if self.settings.protocol == "labeldp" else plain.under(self.settings)

    @property
    def learns_omega(self) -> bool:
        """Whether the first round is there to learn omega."""
        return self.settings.protocol == "khr" and self.settings.omega == "learnt"

    @property
    def rounds(self) -> int:
        """One for Naive Bayes, one for each level of a tree, and one for omega where it is learnt."""
        return self.learns_omega + (1 if self.kind == "bayes" else self.depth)

    @cached_property
    def first(self) -> Protocol:
        """The protocol of the first round."""
        if self.learns_omega:
            return asking.omega_protocol(self.schema, self.settings.epsilon)
        return self._protocol(1, self._given())

    def _given(self) -> Basis | None:
        """Return what the first round for the model rests on where the task says it."""
        if self.settings.protocol == "labeldp":
            return None
        sizes, omega = self.schema.sizes[:-1], self.settings.omega
        if self.settings.protocol == "basic":
            omega = 1.0
        if isinstance(omega, (int, float)):
            given = tuple(Omega.given(omega, size) for size in sizes)
        else:
            given = tuple(part for part in omega if not isinstance(part, str))
        if [len(part.curve) for part in given] != list(sizes):
            raise InputError("`omega` must have one curve for each attribute, as long as its values.")
        tree = DecisionTree.start(self.schema.sizes[-1]) if self.kind == "tree" else None
        return Basis(given, tree)

    def _protocol(self, number: int, basis: Basis | None) -> Protocol:
        """Return the protocol of a round that the model is learnt from."""
        if basis is None:
            return asking.label_only_protocol(self.schema, self.settings.epsilon)
        if basis.tree is not None:
            return asking.tree_protocol(self.schema, self._asked(number, basis))
        sizes = zip(self.schema.sizes[:-1], basis.omegas, strict=True)
        made = [make_response(self.settings, size, self.schema.sizes[-1], omega) for size, omega in sizes]
        return asking.pairs_protocol(self.schema, made)

    def _asked(self, number: int, basis: Basis) -> Asked:
        turn = number - self.learns_omega
        tree = basis.tree or DecisionTree.start(self.schema.sizes[-1])
        return asking.turn_round(self.tree, self.schema, basis.omegas, turn, tree)

    @property
    def epsilon(self) -> float:
        """What one answer spends at most, about attributes and label together.

        Where omega is below 1 that is more than the budget of the label: ln(1 + (e^eps - 1) / omega(1)).
        """
        eps = self.settings.epsilon
        if self.settings.protocol == "labeldp":
            return eps if self.settings.secret == "label" else math.inf
        given = None if self.learns_omega else self._given()
        least = (
            1 / max(self.schema.sizes[:-1])
            if given is None
            else min(float(omega.curve[0]) for omega in given.omegas)
        )
        return math.log1p(math.expm1(eps) / least) * (1 + 1e-12)

    def stated(self) -> dict[str, Any]:
        """Return the design as plain data."""
        settings, omega = self.settings, self.settings.omega
        if settings.protocol != "khr":
            omega = 1.0
        stated = omega if isinstance(omega, (str, int, float)) else omegas_data(omega)
        *attributes, label = map(attribute_data, self.schema)
        return {
            "labels": {
                "attribute": attributes, "label": label, "model": self.kind, "epsilon": settings.epsilon,
                "protocol": settings.protocol, "secret": settings.secret, "omega": stated, "k": settings.k,
                "confidence": settings.confidence, "share": settings.share, "tables": self.tables,
                "depth": self.depth, "caution": self.caution,
            }
        }  # fmt: skip

    def learns_from(self, number: int) -> tuple[int, ...]:
        """Return all rounds before: the omegas and the tree come from them."""
        return tuple(range(1, number))

    def read_together(self, number: int) -> tuple[int, ...]:
        """Return all rounds up to this one."""
        return tuple(range(1, number + 1))

    def pairs(self, number: int) -> PairCounts | None:
        """Return the pairs that LabelDP counts."""
        del number
        if self.settings.protocol != "labeldp":
            return None
        return asking.label_only_pairs(self.schema, self.settings.epsilon)

    def made(self, task: str, number: int, earlier: Sequence[Earlier]) -> Round:
        """Return a round, its omegas and its tree being worked out from the sums of those before."""
        if number == 1 and self.learns_omega:
            return Round(task, 1, self.first)
        basis = self.basis([item.told for item in earlier])
        return Round(task, number, self._protocol(number, basis), learnt_from(earlier), basis)

    def basis(self, parts: Sequence[FirstSums]) -> Basis | None:
        """Return what the round after these rests on."""
        collected = self.collected(parts)
        if collected.omegas is None or self.kind == "bayes":
            return None if collected.omegas is None else Basis(collected.omegas)
        return Basis(collected.omegas, tree_state(collected).tree)

    def collected(self, parts: Sequence[FirstSums]) -> Collected:
        """Return the sums of rounds as what a model is learnt from."""
        given = None if self.learns_omega else self._given()
        omegas = None if given is None else given.omegas
        if self.learns_omega and parts:
            omegas = omegas_of(self.schema, self.settings, parts[0].sums)
        return Collected(self, omegas, tuple(parts))

    def check(self, found: Round) -> None:
        """Raise unless a round asks what the task, with the round's omegas and tree, leads to."""
        if found.number == 1 and self.learns_omega:
            check_same(self.first, found.protocol)
            return
        basis, given = found.basis, None if self.learns_omega else self._given()
        if (basis is None) != (self.settings.protocol == "labeldp"):
            raise InputError(f"round {found.number} does not say which omegas it rests on; fetch it again.")
        if basis is not None:
            self._check_basis(basis, given)
        check_same(self._protocol(found.number, basis), found.protocol)

    def _check_basis(self, basis: Basis, given: Basis | None) -> None:
        sizes, classes = self.schema.sizes[:-1], self.schema.sizes[-1]
        if [len(omega.curve) for omega in basis.omegas] != list(sizes):
            raise InputError("the round's omegas are not about the task's attributes; fetch it again.")
        if given is not None and omegas_data(basis.omegas) != omegas_data(given.omegas):
            raise InputError("the round's omegas are not those that the task says; refuse it.")
        if (basis.tree is None) != (self.kind == "bayes"):
            raise InputError(f"the round's tree does not fit the model {self.kind!r} of the task.")
        if basis.tree is not None and not basis.tree.fits(sizes, classes):
            raise InputError("the round's tree is not about the task's attributes and label.")

    def takes_part(self, person: str, task: str, number: int) -> bool:
        """Whether it is a device's turn: drawn once, the same for ever."""
        if self.learns_omega:
            asked_first = takes_first(person, task, self.settings.share)
            if asked_first or number == 1:
                return asked_first and number == 1
        if self.kind == "bayes":
            return True
        return drawn_place(person, task, "turn", self.depth) + 1 == number - self.learns_omega

    def question(self, found: Round) -> Question:
        """Return what an answer is charged: what it says about attributes and label together at most.

        Where the attributes are public it is the label's report alone.
        """
        protocol, spent = found.protocol, found.protocol.epsilon
        if self.settings.secret == "label":
            spent = protocol.groups[-1].randomiser.epsilon
        if math.isinf(spent):
            raise InputError(
                "LabelDP sends your attributes as they are, which no budget bounds; a ledger refuses it. "
                "A task says secret = 'label' where they are public anyway."
            )
        return Question(found.task, found.number, (charge_of(protocol, spent),))

    def shown(self, found: Round) -> tuple[str, ...]:
        """Return the attributes that LabelDP sends as they are: all but the label."""
        del found
        return self.schema.names[:-1] if self.settings.protocol == "labeldp" else ()

    def report(self, found: Round, codes: AnyCodes, memory: Memory) -> RecordReports:
        """Return one person's report: the cell of a drawn attribute, with the label."""
        del memory
        return found.protocol.randomise(self.cells(found, codes))

    def cells(self, found: Round, codes: AnyCodes) -> AnyCodes:
        """Return records as a round's protocol takes them: in a tree, the nodes that they have come to."""
        if found.basis is None or found.basis.tree is None:
            return codes
        return asking.coded_cells(codes, self._asked(found.number, found.basis))

    def figures(self, parts: Sequence[FirstSums], estimator: str, confidence: float) -> dict[str, Any]:
        """Return the tables of value and label that the last round tells, and the model so far."""
        del estimator
        return label_figures(self.collected(parts), confidence)

    def model(self, task: str, earlier: Sequence[Earlier]) -> dict[str, Any]:
        """Return the model that the closed rounds led to, as a file of it has it."""
        return model_data(self.collected([item.told for item in earlier]), task)


class LabelsFile(Strict):
    """A label design as a task's document has it."""

    attribute: list[AttributeFile]
    label: AttributeFile
    model: Kind = "bayes"
    epsilon: float
    protocol: Literal["khr", "basic", "labeldp"] = "khr"
    secret: Secret = "both"
    omega: Annotated[float | Literal["learnt"] | list[OmegaFile], worded(OMEGA)] = 1.0
    k: Annotated[int | WidthRule, worded("a whole number of at least 1, 'search' or 'published'")] = "search"
    confidence: float | None = 0.95
    share: float = 0.1
    tables: TableRule = "shrunken"
    depth: int = 3
    caution: float = 3.0

    def made(self) -> LabelDesign:
        """Return the design."""
        schema = Schema(tuple(map(attribute_from, (*self.attribute, self.label))))
        omega = [item.made() for item in self.omega] if isinstance(self.omega, list) else self.omega
        settings = LabelSettings(
            self.epsilon, self.protocol, omega, self.k, self.confidence, self.share, self.secret
        )
        if settings.protocol != "khr":
            settings = replace(settings, omega=1.0)
        return LabelDesign(schema, self.model, settings, self.depth, self.caution, self.tables)
