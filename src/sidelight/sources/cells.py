"""What the text of a column stands for: numbers, dates, truth values or words, and which cells are missing.

Text is text in a CSV file and in a typed table alike, so one rule serves both and they give one schema:

- A column of which every value reads as a number, a date, a time or a truth value becomes one. A missing
  marker, as `?` or `NA`, is then missing, and a note says so.
- Whole numbers with leading zeros, as 0012, are codes, not quantities: the column stays text.
- A column of other words stays text and keeps its markers as values.
- Mostly numbers (or dates) and at most ten different other values is doubtful: the first such row is named
  and the reader must say what is meant. It is doubtful if at least half of the values are numbers and either
  there are more than twenty different ones, so that they would be binned, or at most one value in a hundred
  is none.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.html import listed
from sidelight.sources.sql import is_among, quoted

if TYPE_CHECKING:
    from sidelight.sources.local import LocalSource

MARKERS = (
    "", "?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "#n/a n/a", "#na", "<na>", "null", "#null!", "none",
    "nan", "-nan", "nat", "nil", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
)  # fmt: skip
"""Markers of a missing value in columns other than text; case and surrounding spaces are ignored."""

HEAD = 200
"""The first rows suggest what a column may be; then all rows decide whether it is."""
_AT_ONCE = 50
_REALS = ("FLOAT", "DOUBLE", "DECIMAL")
_STRAY, _SHARE, _FEW = 10, 100, 20
_NAMED = 5


@dataclass(frozen=True)
class Form:
    """A form that the text of a cell can have, such as a number or a date."""

    name: str  # what to call its values
    pattern: str  # of the cell in lower case, without surrounding spaces
    value: str  # SQL for the value of the cell {}; NULL if the cell does not have this form
    test: str = ""  # a further SQL condition that a cell must meet
    suffices: bool = False  # whether the condition says it all

    def looks(self, cell: str) -> bool:
        """Whether a cell in lower case, without surrounding spaces, may have this form."""
        return re.fullmatch(self.pattern, cell) is not None

    def fits(self, cell: str) -> str:
        """Return SQL for whether a cell has this form."""
        test = self.test if self.suffices else f"{self.value} IS NOT NULL{self.test}"
        return f"({test})".replace("{}", cell)

    def surely(self, cell: str) -> str:
        """Return SQL for whether a cell has this form and is no code with leading zeros."""
        return f"{self.fits(cell)} AND NOT {_CODE.format(cell)}" if self is REAL else self.fits(cell)

    def typed(self, cell: str) -> str:
        """Return SQL for the value of a cell that surely has this form, NULL for any other."""
        return f"CASE WHEN {self.surely(cell)} THEN {self.of(cell)} END"

    def of(self, cell: str) -> str:
        """Return SQL for the value of a cell."""
        return self.value.replace("{}", cell)


_NUMBER = r"[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|nan"
_CLOCK = r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?"
_ISO = r"\d{4}[-/]\d{1,2}[-/]\d{1,2}"
_POINT = " AND NOT contains({}, '.') AND NOT contains(lower({}), 'e')"
_CODE = (
    "(starts_with({0}, '0') AND length({0}) > 1 AND {0}[2] BETWEEN '0' AND '9' AND NOT contains({0}, '.'))"
)

PLAIN = Form(
    "number", r"-?(0|[1-9]\d*)", "TRY_CAST({} AS BIGINT)", "TRY_CAST({} AS BIGINT)::VARCHAR = {}", True
)
WHOLE = Form("number", _NUMBER, "TRY_CAST({} AS BIGINT)", _POINT)
HUGE = Form("number", _NUMBER, "TRY_CAST({} AS HUGEINT)", _POINT)
REAL = Form("number", _NUMBER, "TRY_CAST({} AS DOUBLE)", " AND NOT isnan(TRY_CAST({} AS DOUBLE))")
TRUTH = Form("truth value", "true|false", "TRY_CAST({} AS BOOLEAN)", " AND length({}) > 3")
DATE = Form("date", _ISO, "TRY_CAST({} AS DATE)", " AND length({}) <= 10 AND NOT contains({}, ':')")
MOMENT = Form("time", rf"{_ISO}([ t]{_CLOCK})?", "TRY_CAST({} AS TIMESTAMP)", " AND NOT contains({}, '+')")
ZONED = Form("time", rf"{_ISO}[ t]{_CLOCK}\s?(z|[+-]\d\d(:?\d\d)?)", "TRY_CAST({} AS TIMESTAMPTZ)")
CLOCK = Form("time", _CLOCK, "TRY_CAST({} AS TIME)", " AND length({}) <= 15 AND NOT contains({}, '-')")


def _dates(separator: str) -> list[Form]:
    """Return the dates whose year comes last, the day first or the month first."""
    looks = rf"\d{{1,2}}\{separator}\d{{1,2}}\{separator}\d{{4}}"
    orders = [separator.join(order) for order in (("%d", "%m", "%Y"), ("%m", "%d", "%Y"))]
    dates = [Form("date", looks, f"CAST(try_strptime({{}}, '{order}') AS DATE)") for order in orders]
    clocks = "', '".join(f"{{0}} {clock}" for clock in ("%H:%M:%S", "%H:%M"))
    values = [f"try_strptime({{}}, ['{clocks.format(order)}'])" for order in orders]
    return [*dates, *(Form("time", rf"{looks} {_CLOCK}", value) for value in values)]


FORMS = (
    PLAIN, WHOLE, HUGE, REAL, TRUTH, DATE, MOMENT, ZONED, CLOCK,
    *(form for separator in "/.-" for form in _dates(separator)),
)  # fmt: skip


@dataclass(frozen=True)
class Stated:
    """What the reader has said about cells.

    Those of `na` are missing in every column, besides the usual ones in columns not of text; where nothing
    but the empty cell is named, those are none.
    """

    na: tuple[str, ...] | None = None
    words: frozenset[str] = frozenset()  # columns that stay text where their values are not all of one form
    numbers: frozenset[str] = frozenset()  # columns that are numbers even with leading zeros

    @property
    def named(self) -> tuple[str, ...]:
        """The cells that are said to be missing, lower-case."""
        return ("", "nan", *(word.strip().lower() for word in self.na or ()))

    @property
    def markers(self) -> tuple[str, ...]:
        """The cells that are missing where a column is not of text, lower-case."""
        usual = self.na is None or any(word.strip() for word in self.na)
        return tuple(dict.fromkeys((*(MARKERS if usual else ()), *self.named)))


def stated_na(na: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the cells that a reader takes for missing."""
    if na is None:
        return None
    words = (na,) if isinstance(na, str) else tuple(na)
    if not all(isinstance(word, str) for word in words):
        raise invalid("na", "text, as '?' or ['?', '-9']", na)
    return words


@dataclass(frozen=True)
class _Column:
    """A column of text, the forms that some cell looks like, and the first that all of the head look like."""

    name: str
    forms: tuple[Form, ...]
    guess: Form | None = None
    is_clean: bool = True  # whether no cell of the head is a marker
    present: int = 0
    fitting: tuple[int, ...] = ()
    codes: int = 0
    form: Form | None = None
    cell: str = ""

    @property
    def best(self) -> Form:
        """The form of the most cells, the widest of equally good ones."""
        return max(reversed(list(zip(self.fitting, self.forms, strict=True))), key=lambda pair: pair[0])[1]


def settle(source: LocalSource, columns: Sequence[str], stated: Stated) -> LocalSource:
    """Return the source with its columns of text as what they stand for, and a note on what was missing."""
    texts = [name for name in columns if source.columns[name] == "VARCHAR"]
    parts = [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]
    settled = [column for part in parts for column in _settled(source, part, stated)]
    values = {column.name: column.form.of(column.cell) for column in settled if column.form}
    notes = tuple(_notes(source, [column for column in settled if column.form]))
    if stated.na:
        values |= _without(source, [name for name in columns if name not in values], stated.named)
    return replace(source.replacing(values), notes=source.notes + notes) if values else source


def _settled(source: LocalSource, names: Sequence[str], stated: Stated) -> list[_Column]:
    """Look at some columns as they are, and once more without markers at those that are not of one form."""
    heads = source.rows(", ".join(quoted(name) for name in names), f"LIMIT {HEAD}")
    seen = zip(*heads, strict=True) if heads else [()] * len(names)
    possible = (_column(source, *pair, stated.markers) for pair in zip(names, seen, strict=True))
    columns = [column for column in possible if column.forms]
    clean = [replace(c, cell=quoted(c.name)) for c in columns if c.guess and c.is_clean]
    guessed = _guessed(source, clean) if stated.na is None else []  # what is missing may look like a number
    sure = {column.name for column in guessed}
    unsure = [replace(c, cell=_stripped(c.name, stated.markers)) for c in columns if c.name not in sure]
    numbers = {c.name: c for c in _guessed(source, [c for c in unsure if c.guess in (PLAIN, REAL)])}
    looked = _looked(source, [c for c in unsure if c.name not in numbers], stated)
    found = numbers | {c.name: c for c in looked if not _is_doubtful(source, c, stated)}
    return guessed + [found[c.name] for c in unsure if c.name in found]


def _guessed(source: LocalSource, columns: Sequence[_Column]) -> list[_Column]:
    """Return the columns of which every cell has the form of the head: most are settled by this one scan."""
    guesses = [replace(column, form=column.guess) for column in columns]
    parts = []
    for column in guesses:
        test = column.form.surely(column.cell) if column.form else ""
        parts += [f"count({column.cell})", f"count(*) FILTER (WHERE {test})"]
    figures = source.rows(", ".join(parts))[0] if parts else ()
    return [c for c, n, fit in zip(guesses, figures[::2], figures[1::2], strict=True) if n == fit]


def _column(source: LocalSource, name: str, cells: Sequence[str | None], markers: tuple[str, ...]) -> _Column:
    """Return what a column may be by its head; if all of that is missing, by later cells."""
    head = {cell.strip().lower() for cell in cells if cell is not None}
    present = head - set(markers)
    if not present and len(cells) == HEAD:
        stripped = _stripped(name, markers)
        later = source.rows(f"lower({stripped})", f"WHERE {stripped} IS NOT NULL LIMIT {HEAD}", name)
        present = {row[0] for row in later}
    forms = (form for form in FORMS if form is not PLAIN and any(map(form.looks, present)))
    return _Column(name, tuple(forms), looks_like(present), head.isdisjoint(markers))


def looks_like(cells: Iterable[str | None]) -> Form | None:
    """Return the form that all of some cells seem to have; None where they have none in common."""
    present = {cell.strip().lower() for cell in cells if cell is not None}
    guess = next((form for form in FORMS if present and all(map(form.looks, present))), None)
    if guess is WHOLE:  # all are numbers, and not all are plain: whole ones may be written in other ways
        return REAL if any(not {".", "e"}.isdisjoint(cell) for cell in present) else None
    return guess


def _stripped(name: str, markers: Sequence[str]) -> str:
    """Return SQL for a cell without spaces around, NULL where it is missing."""
    stripped = f"trim({quoted(name)})"
    return f"(CASE WHEN NOT {is_among(f'lower({stripped})', markers)} THEN {stripped} END)"


def _looked(source: LocalSource, columns: Sequence[_Column], stated: Stated) -> list[_Column]:
    """Count for each column the cells of each form that it may have, all in one scan."""
    parts = []
    for column in columns:
        tests = [*(form.fits(column.cell) for form in column.forms), _CODE.format(column.cell)]
        parts += [f"count({column.cell})", *(f"count(*) FILTER (WHERE {test})" for test in tests)]
    figures = iter(source.rows(", ".join(parts))[0] if parts else ())
    looked = []
    for column in columns:
        present, *fitting, codes = (next(figures) for _ in range(len(column.forms) + 2))
        codes = 0 if column.name in stated.numbers else codes
        fits = zip(column.forms, fitting, strict=True)
        whole = next((form for form, n in fits if n == present and present), None)
        form = None if codes and whole in (WHOLE, HUGE, REAL) else whole
        looked.append(replace(column, present=present, fitting=tuple(fitting), codes=codes, form=form))
    return looked


def _is_doubtful(source: LocalSource, column: _Column, stated: Stated) -> bool:
    """Raise if a column without a form nearly has one and nobody said that it is text."""
    if column.form or not column.forms or column.codes:
        return False
    best, others = column.best, column.present - max(column.fitting)
    if column.name in stated.words or best is TRUTH or 2 * others > column.present:
        return False
    bad = f"{column.cell} IS NOT NULL AND NOT {best.fits(column.cell)}"
    kinds, numbers, row = source.rows(
        f"count(DISTINCT {column.cell}) FILTER (WHERE {bad}), "
        f"count(DISTINCT {column.cell}) FILTER (WHERE {best.fits(column.cell)}), "
        f"min(CASE WHEN {bad} THEN sidelight_place END)",
        column=column.name,
        origin=f"(SELECT row_number() OVER () AS sidelight_place, * FROM {source.view})",
    )[0]
    if kinds > _STRAY or (numbers <= _FEW and others * _SHARE > column.present):
        return False
    where, line = source.finder(row) if source.finder is not None else (source.label, f"row {row}")
    raise InputError(
        f"column {column.name!r} of {where} holds {best.name}s, but {others} of its {column.present} values "
        f"{'is' if others == 1 else 'are'} none, the first in {line}; if such a value is missing, name it by "
        f"na= (--na), if the column is text, say kinds={{{column.name!r}: 'categorical'}} (--kind "
        f"{shlex.quote(f'{column.name}=categorical')})."
    )


def _notes(source: LocalSource, columns: Sequence[_Column]) -> Iterator[str]:
    """Say which markers were read as missing; columns with the same ones share a note."""
    alike: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for column in columns:
        name = quoted(column.name)
        rest = f"WHERE {column.cell} IS NULL AND {name} IS NOT NULL GROUP BY 1"
        is_plain = column.cell == name  # where no cell was taken for missing
        markers = [] if is_plain else source.rows(f"trim({name}), count(*)", rest, column.name)
        if markers:
            words = tuple(sorted(word for word, _ in markers))
            alike.setdefault(words, []).append((column.name, sum(count for _, count in markers)))
    for words, counts in alike.items():
        names = listed([repr(name) for name, _ in counts], _NAMED)
        shown = ", ".join(repr(word) if word else "blank" for word in words)
        cells = sum(count for _, count in counts)
        yield (
            f"Column{'s' * (len(counts) > 1)} {names}: {cells} cell{'s' * (cells != 1)} ({shown}) read "
            "as missing; set na='' (--na '') if that is wrong."
        )


def _without(source: LocalSource, names: Iterable[str], markers: tuple[str, ...]) -> dict[str, str]:
    """Return SQL for columns in which the cells that a reader takes for missing are."""
    stated = (float(marker) for marker in markers if REAL.looks(marker))
    numbers = [number for number in stated if math.isfinite(number)]
    replaced = {}
    for name, kind in source.columns.items():
        if name in names and "[" not in kind and "(" not in kind:
            tests = [f"NOT {is_among(f'lower(trim({quoted(name)}::VARCHAR))', markers)}"]
            tests += [f"{quoted(name)} <> {number!r}" for number in numbers if kind in _REALS]
            replaced[name] = f"CASE WHEN {' AND '.join(tests)} THEN {quoted(name)} END"
    return replaced
