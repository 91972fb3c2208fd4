"""What a study leaves behind: its table as CSV, its figures as SVG and PNG, the rest as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_number, strict_json, write_atomically, write_text
from sidelight.studies.study import Kind, Study, StudyResult, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULT = "result.json"
TABLE = "table.csv"
SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}
_KINDS = ("svg", "png")
_DOTS = 110


@dataclass(frozen=True)
class Saved:
    """A result as it lies in a folder, key by key as its JSON has them."""

    study: str  # its name
    quick: bool  # whether it was computed quickly
    verdict: Kind  # against what is published
    reason: str  # of the verdict, in one line
    counter_example: str  # of a refuted statement
    published: dict[str, Value]  # what the paper says
    ours: dict[str, Value]  # our value for each of them
    figures: tuple[tuple[str, str], ...]  # file name without ending, and title
    seconds: float  # how long the work behind it took


def save(study: Study, result: StudyResult, folder: Path, *, quick: bool, seconds: float) -> Saved:
    """Write a result into a folder of its own, which must not exist."""
    from matplotlib import rc_context

    folder.mkdir(parents=True)
    if result.columns:
        write_text(folder / TABLE, table_csv(result))
    for drawing in result.drawings:
        with rc_context(SETTINGS):
            figure = drawing.build()
        for kind in _KINDS:
            save_figure(figure, folder / f"{drawing.name}.{kind}")
            figure.set_layout_engine("none")  # to find room takes longer than to draw; the next file keeps it
    figures = tuple((drawing.name, drawing.title) for drawing in result.drawings)
    said, ours = ({name: _known(each) for name, each in of.items()} for of in (study.published, result.ours))
    words = (result.verdict.reason, result.verdict.counter_example)
    saved = Saved(study.name, quick, result.verdict.kind, *words, said, ours, figures, round(seconds, 3))
    write_text(folder / RESULT, json.dumps(asdict(saved), indent=2, ensure_ascii=False) + "\n")
    return saved


def load(folder: Path) -> Saved:
    """Read what `save` wrote; raise OSError or ValueError if it is something else, or incomplete."""
    from pydantic import TypeAdapter

    saved = TypeAdapter(Saved).validate_python(strict_json((folder / RESULT).read_text(encoding="utf-8")))
    files = {f"{name}.{kind}" for name, _ in saved.figures for kind in _KINDS}
    if not files <= {path.name for path in folder.iterdir()}:
        raise ValueError(f"{folder} lacks a figure of its result")
    return saved


def table_csv(result: StudyResult) -> str:
    """Return the table as CSV, numbers to six digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
    return out.getvalue()


def check_replaceable(target: Path) -> None:
    """Refuse to replace anything but a study's outputs: a folder of the user's is never removed."""
    if target.exists() and not (target / RESULT).is_file():
        raise InputError(f"{target} is there and no study left it; name another folder for the outputs.")


def copy_folder(source: Path, target: Path) -> None:
    """Replace a folder by a copy of another; an interruption leaves the old one, the new one or none."""
    check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".study-", dir=target.parent) as temporary:
        shutil.copytree(source, Path(temporary) / "new")
        if target.exists():
            target.rename(Path(temporary) / "old")
        (Path(temporary) / "new").rename(target)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure to an SVG or PNG file; the same figure always gives the same file."""
    from matplotlib import rc_context

    kind = path.suffix.removeprefix(".").lower()
    # with the date in it the same figure would give another file every time
    options: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": _DOTS}
    with rc_context(SETTINGS):
        return write_atomically(path, lambda temporary: figure.savefig(temporary, format=kind, **options))


def _known(value: Value) -> Value:
    """Return a value as JSON has it; a number that it lacks becomes its name."""
    return value if isinstance(value, str) else "nan" if math.isnan(value) else json_number(float(value))
