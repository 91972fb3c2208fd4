"""Comments of a TOML file that is written anew: people's own words are carried over to where they belong.

The writers of TOML keep no comments, so both texts are cut into statements (a table's head, or a key and its
value), and a comment goes with the statement that it stands above or beside. One whose statement is gone is
kept at the end.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[str, ...]
"""Where a statement stands: the names of its tables, of an entry of a list what tells it apart, its key."""


@dataclass(frozen=True)
class _Statement:
    place: Place  # empty for what follows the last statement
    lines: tuple[str, ...]  # as written, without a comment at their end
    above: tuple[str, ...]  # the comments that stand before it or inside it
    beside: str  # the comment at the end of its last line

    @property
    def comments(self) -> tuple[str, ...]:
        return (*self.above, *([self.beside] if self.beside else []))

    def with_comments(self, said: _Statement | None) -> list[str]:
        """Return the lines with the comments of another statement, below the blank ones at the top."""
        if said is None or not self.lines:
            return [*self.lines]
        blank = next((at for at, line in enumerate(self.lines) if line.strip()), len(self.lines))
        *body, last = self.lines[blank:]
        beside = f"  {said.beside}" if said.beside else ""
        return [*self.lines[:blank], *said.above, *body, f"{last}{beside}"]


def carried_over(old: str, new: str, key: str) -> str:
    r"""Return the new text with the comments of the old one; both are TOML, and only the old has comments.

    Entries of a list of tables, as [[release]], are the same where they have the same value of `key`.

    >>> old = 'limit = 1.0  # agreed in May\n[[release]]\n# public\nattribute = "age"\n'
    >>> print(carried_over(old, 'limit = 2.0\n', "attribute"), end="")
    limit = 2.0  # agreed in May
    <BLANKLINE>
    # release age attribute:
    # public
    """
    try:
        before, after = _statements(old, key), _statements(new, key)
    except (tomllib.TOMLDecodeError, RecursionError):  # whatever was there, it said nothing of ours
        return new
    said = {item.place: item for item in before if item.comments}
    lines: list[str] = []
    left = dict(said)
    for item in after:
        lines += item.with_comments(left.pop(item.place, None) if item.place else None)
    text = _ended("\n".join(lines), left)
    # a text in which a comment ended up inside a value would say something else
    is_same = tomllib.loads(text) == tomllib.loads(new)
    return text if is_same else _ended(new, said)


def _ended(text: str, left: Mapping[Place, _Statement]) -> str:
    """Return a text that ends with the comments of statements that are gone, each after where it stood."""
    ends: list[str] = []
    for place, item in left.items():
        name = "".join(char if char.isprintable() else " " for char in " ".join(place))
        ends += [f"# {name}:"] if place else []
        ends += item.comments
    return "\n".join([text.rstrip("\n"), "", *ends, ""]) if ends else text.rstrip("\n") + "\n"


def _statements(text: str, key: str) -> list[_Statement]:
    """Cut a text into its statements; the last has no place and holds what follows all others."""
    data, parts = tomllib.loads(text), list(_parts(text))
    found: list[_Statement] = []
    table: Place = ()
    entries: dict[Place, int] = {}
    for lines, above, beside in parts:
        code = "\n".join(lines).strip()
        if not code:
            found.append(_Statement((), lines, above, beside))
            continue
        place = table
        if code.startswith("["):
            names = _path(tomllib.loads(code))
            if code.startswith("[["):
                entries[names] = entries.get(names, -1) + 1
            table = place = _told_apart(data, names, entries, key)
        else:
            place = (*table, *_path(tomllib.loads(code)))
        found.append(_Statement(place, lines, above, beside))
    return found


def _path(data: Any) -> Place:
    """Return the names that lead into data in which each table has one entry."""
    names: list[str] = []
    while True:
        if isinstance(data, list) and len(data) == 1:
            data = data[0]
        if not isinstance(data, dict) or len(data) != 1:
            return tuple(names)
        ((name, data),) = data.items()
        names.append(name)


def _told_apart(data: Any, names: Place, entries: Mapping[Place, int], key: str) -> Place:
    """Return a table's names with, after each list of tables, what tells the entry at hand apart."""
    place: list[str] = []
    for length, name in enumerate(names, start=1):
        place.append(name)
        data = data[name]
        if isinstance(data, list):
            number = entries.get(names[:length], 0)
            data = data[number]
            place.append(str(data.get(key, number)))
    return tuple(place)


def _parts(text: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Yield the lines of each statement, the comments above and inside it, and the one beside its end."""
    lines: list[str] = []
    above: list[str] = []
    quote, depth = "", 0
    for line in text.split("\n"):
        code, comment, quote, depth = _split(line.removesuffix("\r"), quote, depth)
        is_open = bool(quote) or depth > 0
        lines.append(code if quote else code.rstrip())
        if is_open or not code.strip():
            above += [comment] if comment else []
            if not is_open and comment:  # a line of its own goes with what follows
                lines.pop()
            continue
        yield tuple(lines), tuple(above), comment
        lines, above = [], []
    yield tuple(lines), tuple(above), ""


def _split(line: str, quote: str, depth: int) -> tuple[str, str, str, int]:
    """Return a line's code and its comment, and in which quotes and how many brackets it ends."""
    at = 0
    while at < len(line):
        rest = line[at:]
        if quote:
            if quote[0] == '"' and rest[0] == "\\":
                at += 2
                continue
            if rest.startswith(quote):
                # three quotes may close a text that ends with quotes itself
                ends = len(quote) if len(quote) == 1 else len(rest) - len(rest.lstrip(quote[0]))
                at, quote = at + ends, ""
                continue
        elif rest[0] == "#":
            return line[:at], rest, "", depth
        elif rest[0] in "\"'":
            quote = rest[0] * 3 if rest.startswith(rest[0] * 3) else rest[0]
            at += len(quote)
            continue
        depth += 0 if quote else (rest[0] in "[{") - (rest[0] in "]}")
        at += 1
    return line, "", quote if len(quote) == 3 else "", depth
