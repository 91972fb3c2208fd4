"""A result becomes a page, a page becomes one HTML file that works without a network.

The register names, for every kind of result, the function that makes its page. The file may hold hostile
text (names and values come from data), so three things guard it: templates escape everything, figures are
data that a fixed script reads, and the page's own security policy lets no other script run and nothing be
fetched.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, write_text
from sidelight.report import wording
from sidelight.report.glossary import explained
from sidelight.report.style import DARK, LIGHT, MARKS, VERDICTS, Trace, layout

if TYPE_CHECKING:  # tables on a terminal load this module too
    from jinja2 import Environment

PAGES: dict[str, str | Callable[[Any], Page]] = {
    "sidelight.auditing.result:Audit": "sidelight.report.audit:audit_page",
    "sidelight.remedying.result:Remedies": "sidelight.report.remedies:remedies_page",
    "sidelight.knowledge.audit:KnowledgeAudit": "sidelight.report.knowledge:knowledge_page",
    "sidelight.calibration.result:Calibration": "sidelight.report.calibration:calibration_page",
    "sidelight.comparison.weighed:Comparison": "sidelight.report.plans:comparison_page",
    "sidelight.advice.advice:Advice": "sidelight.report.collection:advice_page",
    "sidelight.advice.rounds:RoundsAdvice": "sidelight.report.rounds_advice:rounds_advice_page",
    "sidelight.estimation.estimates:Comparison": "sidelight.report.collection:estimates_page",
    "sidelight.estimation.estimates:Estimates": "sidelight.report.collection:estimates_page",
    "sidelight.estimation.round_estimates:RoundEstimates": "sidelight.report.over_time:round_estimates_page",
    "sidelight.advice.pairs:PairAdvice": "sidelight.report.pairs:pair_advice_page",
    "sidelight.estimation.pairs:PairEstimates": "sidelight.report.pairs:pairs_page",
    "sidelight.learning.learnt:Learnt": "sidelight.report.learning:learnt_page",
    "sidelight.attacks.result:AttackComparison": "sidelight.report.attack:comparison_page",
    "sidelight.attacks.result:AttackResult": "sidelight.report.attack:attack_page",
}
"""Every kind of result and the function that makes its page; one of ours is loaded when it is asked for."""

_LONGEST_NAME = 80
_SCRIPTS = ("print", "report", "tables", "terms")
"""What a page runs, in this order: the printed summary, figures, tables, the words it explains."""


@dataclass(frozen=True)
class Figure:
    """One interactive figure: plain data for plotly.js, in which a colour is "@" and its palette name."""

    data: list[Trace]
    layout: Trace  # axes, margins, annotations
    description: str  # what it shows, for those who do not see it
    min_width: int = 0  # in pixels; on a narrower screen the figure scrolls in its box
    narrow: Trace | None = None  # the layout on a phone; the same if there is none

    @property
    def drawing(self) -> Trace:
        """What the page's script draws: a line that many hover texts share is written once."""
        lines: dict[str, int] = {}
        data = [
            {key: _numbered(value, lines) if key == "hovertext" else value for key, value in trace.items()}
            for trace in self.data
        ]
        return {"data": data, "lines": list(lines), "layout": self.layout, "narrow": self.narrow}


def _numbered(texts: Any, lines: dict[str, int]) -> list[Any]:
    """Replace every text in nested lists by the numbers of its lines, which are put into `lines`."""
    if isinstance(texts, str):
        return [lines.setdefault(line, len(lines)) for line in texts.split("\n")]
    return [_numbered(text, lines) for text in texts]


@dataclass(frozen=True)
class Page:
    """What a report says."""

    title: str
    template: str  # the file that words it
    context: Mapping[str, Any]  # what the template may use
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by the name the template places them with


@dataclass(frozen=True)
class Section:
    """A section that needs no template of its own: prose, a figure and a table, as far as there are any."""

    title: str
    prose: str = ""  # what to know before reading the rest
    figure: Figure | None = None
    columns: Sequence[str] = ()  # the heads of its table
    rows: Sequence[Sequence[object]] = ()  # numbers are aligned to the right
    numbers: Collection[str] = ()  # heads of columns whose texts begin with a number, and are sorted by it


def plotted(
    data: list[Trace], description: str, height: int, across: Trace, down: Trace, *,
    headroom: int = 8, min_width: int = 0, **changes: Any,
) -> Figure:  # fmt: skip
    """Return a figure over two axes, with so many pixels above them: in the common layout, with changes."""
    margin = {"l": 8, "r": 8, "t": headroom, "b": 8}
    shape = layout(height=height, **({"margin": margin} | changes), xaxis=across, yaxis=down)
    return Figure(data, shape, description, min_width)


def drawn(**figures: Figure | None) -> dict[str, Figure]:
    """Return the figures that have something to show."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def sections_page(title: str, headline: str, sections: Mapping[str, Section]) -> Page:
    """Return a page of plain sections, by their anchors, under one sentence that says what was found."""
    figures = drawn(**{key: part.figure for key, part in sections.items()})
    return Page(title, "sections.html.j2", {"headline": headline, "parts": sections}, figures)


def add_page(kind: type, maker: Callable[[Any], Page]) -> None:
    """Let `write_report` take results of a type: `maker` turns one into its page."""
    PAGES[_address(kind)] = maker


def _address(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def write_report(result: object, path: str | Path, *, home: str = "") -> Path:
    """Write what a verb returned, an audit, estimates and so on (`PAGES`), as HTML that needs no network.

    The one file appears whole or not at all; only a page of Sidelight's is replaced. It may link to the
    page that it is a part of, its `home`, by that page's relative address.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path} must end in .html.")
    check_overwrite(path)  # another file of the user's may have that name
    return write_text(path, render(page_of(result), home))


def page_of(result: object) -> Page:
    """Return the page of a result, by its type."""
    for kind in type(result).__mro__:
        home = PAGES.get(_address(kind))
        if home is not None:
            maker: Callable[[Any], Page] = resolve_name(home) if isinstance(home, str) else home
            return maker(result)
    known = ", ".join(key.partition(":")[2] for key in PAGES)
    raise InputError(f"a report needs a result of one of the kinds {known}, got a {type(result).__name__}.")


def render(page: Page, home: str = "") -> str:
    """Return the page as HTML, with a link to its `home` if it has one."""
    library = [_packaged("assets/plotly.min.js")] if page.figures else []
    scripts = [*library, "\n".join(_packaged(f"templates/{name}.js") for name in _SCRIPTS)]
    return (_environment().get_template(page.template)).render(
        page.context, title=page.title, home=home, figures=page.figures,
        drawings={name: figure.drawing for name, figure in page.figures.items()},
        palettes={"light": LIGHT, "dark": DARK},
        style=Markup(_packaged("templates/report.css")),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own file and plotly's
        hashes=[_hash(script) for script in scripts],
    )  # fmt: skip


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sidelight.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    compact = {"allow_nan": False, "ensure_ascii": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = compact
    environment.globals.update(colours=VERDICTS, marks=MARKS, is_nan=math.isnan)
    numbers = (
        wording.nats, wording.factor, wording.certainty, wording.share, wording.whole, wording.budget,
        wording.significant, wording.hundredths, wording.points,
    )  # fmt: skip
    filters = (*numbers, named, brief, sentence, headings, explained)
    environment.filters.update({function.__name__: function for function in filters})
    return environment


def named(text: str) -> Markup:
    """Return a name or value of the data as a page shows it: a very long one is cut, and says itself in full.

    >>> named("a<b")
    Markup('<bdi>a&lt;b</bdi>')
    """
    if len(text) <= _LONGEST_NAME:
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}</bdi>').format(text, wording.short(text, _LONGEST_NAME))


def brief(text: str) -> Markup:
    """Return a name or value as a sheet of paper shows it, where every line counts."""
    return Markup("<bdi>{}</bdi>").format(wording.short(text))


def sentence(text: str) -> Markup:
    """Return a sentence in which the names of the data are set off.

    >>> sentence(f"{wording.marked('<age>')} is odd")
    Markup('<bdi>&lt;age&gt;</bdi> is odd')
    """
    escaped = str(escape(text)).replace(wording.MARK_OPEN, "<bdi>").replace(wording.MARK_CLOSE, "</bdi>")
    return Markup(escaped)  # noqa: S704 - escaped above


def headings(body: str) -> list[tuple[str, Markup]]:
    """Return the anchor and the heading of every section of a page, for its table of contents."""
    found = re.findall(r'<section id="([^"]+)">\n<h2>(.*?)</h2>', body)
    return [(key, Markup(heading)) for key, heading in found]  # noqa: S704 - a template escaped it


def _packaged(path: str) -> str:
    return (files("sidelight.report") / path).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the hash by which a content security policy names the one script that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
