"""A decision tree as an SVG drawing: plain shapes and text, so that nothing has to be loaded to make it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_text
from sidelight.learning.decision import DecisionTree
from sidelight.schema import Attribute

_WIDTH, _HEIGHT = 150, 44
_ACROSS, _DOWN = 166, 92
_LONGEST = 21


def draw_tree(
    tree: DecisionTree, attributes: Sequence[Attribute], label: Attribute, path: str | Path
) -> Path:
    """Write the drawing to an SVG file; the same tree always gives the same file."""
    if Path(path).suffix.lower() != ".svg":
        raise InputError(f"{path} must end in .svg.")
    return write_text(path, tree_svg(tree, attributes, label))


def tree_svg(tree: DecisionTree, attributes: Sequence[Attribute], label: Attribute) -> str:
    """Return the drawing: questions in boxes, yes to the left, leaves with their likeliest label."""
    places = _places(tree)
    width = int(max(x for x, _ in places.values()) + _ACROSS)
    height = int(max(y for _, y in places.values()) + _DOWN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" text-anchor="middle">',
        f"<title>Decision tree for {escape(label.name)}</title>",
    ]
    for number, (x, y) in places.items():
        children = tree.nodes[number].children
        for child, word in zip(children or (), ("yes", "no"), strict=False):
            parts.append(_branch((x, y), places[child], word))
    parts += [_box(tree, number, attributes, label, place) for number, place in places.items()]
    return "\n".join([*parts, "</svg>\n"])


def _places(tree: DecisionTree) -> dict[int, tuple[float, float]]:
    """Return where each node's box is: leaves side by side, parents above the middle of their children."""
    places: dict[int, tuple[float, float]] = {}
    free = 8.0
    waiting = [0]
    order = []
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += reversed(tree.nodes[number].children or ())
    for number in order:
        if tree.nodes[number].children is None:
            places[number] = (free, 8.0 + _DOWN * len(tree.nodes[number].path))
            free += _ACROSS
    for number in reversed(order):
        children = tree.nodes[number].children
        if children is not None:
            middle = (places[children[0]][0] + places[children[1]][0]) / 2
            places[number] = (middle, 8.0 + _DOWN * len(tree.nodes[number].path))
    return dict(sorted(places.items()))


def _branch(start: tuple[float, float], end: tuple[float, float], word: str) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH / 2, start[1] + _HEIGHT, end[0] + _WIDTH / 2, end[1]
    line = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#888"/>'
    return f'{line}<text x="{(x1 + x2) / 2:g}" y="{(y1 + y2) / 2:g}" fill="#555">{word}</text>'


def _box(
    tree: DecisionTree,
    number: int,
    attributes: Sequence[Attribute],
    label: Attribute,
    place: tuple[float, float],
) -> str:
    node, (x, y) = tree.nodes[number], place
    share = f"{max(node.shares):.0%} of {node.mass:.1%}"
    if node.attribute is not None and node.value is not None:
        asked = attributes[node.attribute]
        lines, colour = (f"{asked.name} =", f"{asked.values[node.value]}?"), "#eef3fb"
    else:
        lines, colour = (label.values[node.label], share), "#eaf6ec"
    texts = "".join(
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 18 + 15 * i:g}">{escape(_short(line))}</text>'
        for i, line in enumerate(lines)
    )
    frame = f'width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{colour}" stroke="#888"'
    box = f'<rect x="{x:g}" y="{y:g}" {frame}/>'
    return box + texts


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
