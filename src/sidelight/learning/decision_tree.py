"""A binary decision tree over codes: each node asks whether an attribute has one value (CLLDP, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import Strict
from sidelight.foundation.terminal import printable
from sidelight.learning.bayes import LabelModel
from sidelight.schema import Attribute

Whole = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_ROUNDING = 1e-6  # shares are quotients: they need not sum to 1 to the last bit


@dataclass(frozen=True)
class Step:
    """One step of a path: whether the attribute has the value."""

    attribute: int
    value: int
    holds: bool


@dataclass(frozen=True)
class TreeNode:
    """A node: open (the next round decides about it), a leaf, or a question with two children.

    Attributes:
        path: the steps from the root.
        shares: the labels' shares among the records that come here, a share `mass` of all records.
        attribute: the one whose `value` it asks for; None for a leaf or an open node.
        children: the numbers of the nodes for yes and no.
    """

    path: tuple[Step, ...]
    shares: tuple[float, ...]
    mass: float
    attribute: int | None = None
    value: int | None = None
    children: tuple[int, int] | None = None
    is_open: bool = False

    @property
    def label(self) -> int:
        """The likeliest label."""
        return int(np.argmax(self.shares))


class NodeFile(Strict):
    """One node of a file's tree."""

    path: list[Annotated[tuple[Whole, Whole, bool], Field(strict=False)]]
    shares: Annotated[list[Share], Field(min_length=2)]
    mass: Share
    attribute: Whole | None
    value: Whole | None
    children: Annotated[tuple[Whole, Whole], Field(strict=False)] | None
    open: bool

    def made(self) -> TreeNode:
        """Return the node."""
        path = tuple(Step(*step) for step in self.path)
        asked = (self.attribute, self.value, self.children)
        return TreeNode(path, tuple(self.shares), self.mass, *asked, self.open)


@dataclass(frozen=True)
class DecisionTree(LabelModel):
    """The nodes by number; number 0 is the root."""

    nodes: tuple[TreeNode, ...]

    @classmethod
    def start(cls, labels: int) -> DecisionTree:
        """Return a tree that is nothing but an open root."""
        return cls((TreeNode((), (1 / labels,) * labels, 1.0, is_open=True),))

    @property
    def open_nodes(self) -> tuple[int, ...]:
        """The nodes that the next round decides about."""
        return tuple(number for number, node in enumerate(self.nodes) if node.is_open)

    @property
    def depth(self) -> int:
        """The longest path."""
        return max(len(node.path) for node in self.nodes)

    def settled(self, number: int, shares: Array, mass: float, *, is_open: bool) -> DecisionTree:
        """Return the tree in which the node has these labels, as a leaf or still open."""
        shown = tuple(shares.tolist())
        return self._with(number, replace(self.nodes[number], shares=shown, mass=mass, is_open=is_open))

    def split(
        self, number: int, attribute: int, value: int, children: tuple[Array, Array], *, last: bool
    ) -> DecisionTree:
        """Return the tree in which the node asks for a value; only in the last round are its children leaves.

        `children` are the labels' weights among the records with the value and among the others.
        """
        node = self.nodes[number]
        total = children[0] + children[1]
        whole = float(total.sum())
        shares = total / whole if whole > 0 else np.asarray(node.shares)
        made = []
        for weights, holds in zip(children, (True, False), strict=True):
            mass = float(weights.sum())
            path = (*node.path, Step(attribute, value, holds))
            # Nobody seems to come here: the parent is the best guess.
            inside = weights / mass if mass > 0 else shares
            made.append(TreeNode(path, tuple(inside.tolist()), mass, is_open=not last))
        numbers = (len(self.nodes), len(self.nodes) + 1)
        asked = TreeNode(node.path, tuple(shares.tolist()), whole, attribute, value, numbers)
        return self._with(number, asked, *made)

    def _with(self, number: int, changed: TreeNode, *added: TreeNode) -> DecisionTree:
        nodes = list(self.nodes)
        nodes[number] = changed
        return DecisionTree((*nodes, *added))

    def route(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the leaf, or open node, that each record comes to."""
        at = np.zeros(len(codes), dtype=np.int64)
        for number, node in enumerate(self.nodes):
            if node.children is not None and node.attribute is not None:
                here = np.flatnonzero(at == number)
                holds = codes[here, node.attribute] == node.value
                at[here] = np.where(holds, *node.children)
        return at

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return the labels' shares at the leaf that each record comes to."""
        return np.asarray([node.shares for node in self.nodes])[self.route(codes)]

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain data, for a model file."""
        return {"nodes": self.to_data()}

    def to_data(self) -> list[dict[str, Any]]:
        """Return the nodes as plain data, for a file."""
        return [
            {
                "path": [list(vars(step).values()) for step in node.path],
                "shares": list(node.shares),
                "mass": node.mass,
                "attribute": node.attribute,
                "value": node.value,
                "children": node.children and list(node.children),
                "open": node.is_open,
            }
            for node in self.nodes
        ]

    @classmethod
    def from_data(cls, nodes: Sequence[NodeFile]) -> DecisionTree:
        """Return the tree that `to_data` made plain, after checking that it is one."""
        tree = cls(tuple(entry.made() for entry in nodes))
        if not tree._is_sound():
            raise InputError("the tree in the file is damaged: its nodes make no tree; write it again.")
        return tree

    def _is_sound(self) -> bool:
        """Whether every node but the root is the child of one node before it, one step further."""
        parents = [0] * len(self.nodes)
        for number, node in enumerate(self.nodes):
            if (node.children is None) != (node.attribute is None) or (node.children and node.is_open):
                return False
            for child, holds in zip(node.children or (), (True, False), strict=False):
                step = Step(node.attribute or 0, node.value or 0, holds)
                if not number < child < len(self.nodes) or self.nodes[child].path != (*node.path, step):
                    return False
                parents[child] += 1
        labels = {len(node.shares) for node in self.nodes}
        is_one = bool(self.nodes) and not self.nodes[0].path and parents == [0, *[1] * (len(parents) - 1)]
        return is_one and len(labels) == 1 and all(abs(sum(n.shares) - 1) < _ROUNDING for n in self.nodes)

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether the tree is about attributes of these sizes and this number of labels."""
        steps = [step for node in self.nodes for step in node.path]
        known = all(step.attribute < len(sizes) and step.value < sizes[step.attribute] for step in steps)
        return known and len(self.nodes[0].shares) == labels


def tree_text(tree: DecisionTree, attributes: Sequence[Attribute], label: Attribute) -> str:
    """Return the tree as indented lines.

    >>> from sidelight.schema import categorical
    >>> tree = DecisionTree.start(2).split(0, 0, 1, (np.array([0.1, 0.4]), np.array([0.4, 0.1])), last=True)
    >>> print(tree_text(tree, [categorical("sex", ["f", "m"])], categorical("income", ["low", "high"])))
    sex = m? (100.0 %)
      yes: high 80.0 % (50.0 %)
      no: low 80.0 % (50.0 %)
    """
    lines: list[str] = []
    waiting = [(0, "")]
    while waiting:
        number, start = waiting.pop()
        node = tree.nodes[number]
        if node.children is None or node.attribute is None or node.value is None:
            said = f"{label.values[node.label]} {max(node.shares):.1%}"
        else:
            asked = attributes[node.attribute]
            said = f"{asked.name} = {asked.values[node.value]}?"
            indent = "  " * (len(node.path) + 1)
            waiting += [(node.children[1], f"{indent}no: "), (node.children[0], f"{indent}yes: ")]
        lines.append(printable(f"{start}{said} ({node.mass:.1%})".replace("%", " %")))
    return "\n".join(lines)
