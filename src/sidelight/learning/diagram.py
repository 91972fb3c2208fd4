"""A decision tree as an SVG drawing: plain shapes and text, so that nothing has to be loaded to make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_text
from sidelight.learning.decision_tree import DecisionTree, TreeNode
from sidelight.schema import Attribute

_WIDTH, _HEIGHT = 150, 44
_ACROSS, _DOWN = 204, 56
_EDGE = 8
_LONGEST = 21
PAPER = {"line": "#888888", "word": "#555555", "ink": "#1b2733", "question": "#eef3fb", "leaf": "#eaf6ec"}
"""The colours of a drawing on white paper; a page may give its own."""


def draw_tree(
    tree: DecisionTree, attributes: Sequence[Attribute], label: Attribute, path: str | Path
) -> Path:
    """Write the drawing to an SVG file; the same tree always gives the same file."""
    if Path(path).suffix.lower() != ".svg":
        raise InputError(f"{path} must end in .svg.")
    return write_text(path, tree_svg(tree, attributes, label))


def tree_svg(
    tree: DecisionTree, attributes: Sequence[Attribute], label: Attribute, colours: Mapping[str, str] = PAPER
) -> str:
    """Return the drawing: questions in boxes, from left to right, leaves with their likeliest label.

    The root is at the top left, where a reader looks first however large the tree is.
    """
    places = _places(tree)
    width = int(max(x for x, _ in places.values()) + _WIDTH + _EDGE)
    height = int(max(y for _, y in places.values()) + _HEIGHT + _EDGE)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" text-anchor="middle">',
        f"<title>Decision tree for {escape(label.name)}</title>",
    ]
    for number, (x, y) in places.items():
        children = tree.nodes[number].children
        for child, word in zip(children or (), ("yes", "no"), strict=False):
            parts.append(_branch((x, y), places[child], word, colours))
    for number, place in places.items():
        lines, colour = _lines(tree.nodes[number], attributes, label)
        parts.append(_box(lines, place, colours[colour], colours))
    return "\n".join([*parts, "</svg>\n"])


def _places(tree: DecisionTree) -> dict[int, tuple[float, float]]:
    """Return where each node's box is: a row for each leaf, a parent beside its child for yes."""
    places: dict[int, tuple[float, float]] = {}
    row = 0
    waiting = [0]
    while waiting:
        number = waiting.pop()
        node = tree.nodes[number]
        places[number] = (_EDGE + _ACROSS * len(node.path), _EDGE + _DOWN * row)
        row += node.children is None
        waiting += reversed(node.children or ())
    return dict(sorted(places.items()))


def _branch(
    start: tuple[float, float], end: tuple[float, float], word: str, colours: Mapping[str, str]
) -> str:
    """Return the line from a box to its child's: level for yes, down and across for no."""
    x, y, bend = start[0] + _WIDTH, start[1] + _HEIGHT / 2, end[1] + _HEIGHT / 2
    corner = start[0] + _WIDTH + 12
    path = f"M{x:g} {y:g}H{corner:g}V{bend:g}H{end[0]:g}"
    line = f'<path d="{path}" style="fill: none; stroke: {colours["line"]}"/>'
    place = f'x="{(corner + end[0]) / 2:g}" y="{bend - 4:g}"'
    return f'{line}<text {place} style="fill: {colours["word"]}">{word}</text>'


def _lines(node: TreeNode, attributes: Sequence[Attribute], label: Attribute) -> tuple[tuple[str, str], str]:
    """Return what is written into a node's box, and the name of its colour."""
    if node.attribute is not None and node.value is not None:
        asked = attributes[node.attribute]
        return (f"{asked.name} =", f"{asked.values[node.value]}?"), "question"
    return (label.values[node.label], f"{max(node.shares):.0%} of {node.mass:.1%}"), "leaf"


def _box(lines: Sequence[str], place: tuple[float, float], colour: str, colours: Mapping[str, str]) -> str:
    x, y = place
    texts = "".join(
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 18 + 15 * i:g}" style="fill: {colours["ink"]}">'
        f"<title>{escape(line)}</title>{escape(_short(line))}</text>"
        for i, line in enumerate(lines)
    )
    frame = f'width="{_WIDTH}" height="{_HEIGHT}" rx="6"'
    style = f"fill: {colour}; stroke: {colours['line']}"
    return f'<rect x="{x:g}" y="{y:g}" {frame} style="{style}"/>{texts}'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
