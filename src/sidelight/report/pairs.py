"""Tables of several attributes: how strongly they depend, how sure that is, and how to collect them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from sidelight.advice.pairs import STRENGTHS, PairAdvice, PairOption
from sidelight.estimation.dependence import PairDependence
from sidelight.estimation.pairs import PairEstimates
from sidelight.estimation.synthetic import Synthetic
from sidelight.report.collection import SIMULATED, error
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, Section, plotted, sections_page
from sidelight.report.style import HEAT, Trace, axis, places
from sidelight.report.wording import labels, paragraph, weak_budgets

MOST_NUMBERED = 14
"""A heat map of up to so many attributes has its figures in its cells."""
MOST_CELLS = 2000
"""A page lists so many cells of tables; files have all of them."""
_MOST_ROWS = 40


def pairs_page(estimates: PairEstimates) -> Page:
    """Return the page of tables: a heat map of dependence, and all figures."""
    rows = [_row(estimates, names, found) for names, found in _strongest(estimates)]
    columns = ("pair", "Cramer's V", "lower", "upper", "mutual information", "P(dependent)", "reports")
    heat = heat_figure(estimates) if estimates.dependence else None
    cells = list(estimates.rows())
    listed = [
        (" x ".join(map(str, row["attributes"])), " x ".join(map(str, row["values"])),  # type: ignore[call-overload]
         row["frequency"], row["standard_error"], row["lower"], row["upper"])
        for row in cells[:MOST_CELLS]
    ]  # fmt: skip
    more = f" {len(cells) - MOST_CELLS} further cells are in the files." if len(cells) > MOST_CELLS else ""
    sections = {
        "dependence": Section(
            "How strongly attributes depend on each other", " ".join(notes(estimates)), heat, columns, rows
        ),
        "tables": Section(
            "Estimated tables", f"Shares of people by their values.{more}", None,
            ("attributes", "values", "share", "standard error", "lower", "upper"), listed,
        ),
    }  # fmt: skip
    return sections_page(f"Sidelight tables from {estimates.people} reports", headline(estimates), sections)


def _strongest(estimates: PairEstimates) -> list[tuple[tuple[str, ...], PairDependence]]:
    return sorted(estimates.dependence.items(), key=lambda item: -item[1].cramers_v)


def _row(estimates: PairEstimates, names: Sequence[str], found: PairDependence) -> tuple[object, ...]:
    reports = estimates.tables[tuple(names)].reports
    figures = (found.cramers_v, found.lower, found.upper, found.mutual_information, found.probability)
    return (" x ".join(names), *(round(value, 4) for value in figures), reports)


def headline(estimates: PairEstimates) -> str:
    """Return what was found, in one sentence."""
    certain = [names for names, found in _strongest(estimates) if found.lower > 0]
    whole = len(estimates.dependence)
    if not whole:
        return f"{len(estimates.tables)} tables from {estimates.people} reports."
    if not certain:
        return f"None of {whole} pairs is shown to depend on each other by {estimates.people} reports."
    strongest = " and ".join(certain[0])
    verb = "is" if len(certain) == 1 else "are"
    return f"{len(certain)} of {whole} pairs {verb} shown to depend on each other, most of all {strongest}."


def notes(estimates: PairEstimates) -> list[str]:
    """Return what a reader of the tables must know."""
    whom = "the people who reported" if estimates.about == "collected" else "the population they came from"
    failing = f", with delta {estimates.delta:.3g}" if estimates.delta else ""
    said = [
        f"{estimates.people} reports of {estimates.protocol!r}, at most {estimates.epsilon:.4g} nats for a "
        f"whole record{failing}.",
        "Cramer's V is 0 for independent attributes and 1 where one tells the other. Its interval has the "
        "noise taken off; pairs of weak evidence are shrunk to independence.",
        f"Intervals hold what is true of {whom} with {estimates.confidence:.0%} confidence, each by itself.",
        *(f"{note[0].upper()}{note[1:]}." for note in estimates.notes),
    ]
    return [*said, SIMULATED] if estimates.is_simulation else said


def heat_figure(estimates: PairEstimates) -> Figure:
    """Draw V of every pair below the diagonal, and its interval above it."""
    names = list(estimates.schema.names)
    size = len(names)
    values: list[list[float | None]] = [[None] * size for _ in names]
    known: list[list[float | None]] = [[None] * size for _ in names]
    hover, text, ends = ([[""] * size for _ in names] for _ in range(3))
    for (first, second), found in estimates.dependence.items():
        a, b = names.index(first), names.index(second)
        between = f"{found.lower:.2f} to {found.upper:.2f}"
        hover[a][b] = hover[b][a] = paragraph(
            f"{first} and {second}", f"Cramer's V {found.cramers_v:.2f}", f"interval {between}",
            f"P(dependent) {found.probability:.2f}",
        )  # fmt: skip
        values[b][a], text[b][a] = round(found.cramers_v, 4), f"{found.cramers_v:.2f}"
        known[a][b], ends[a][b] = 1.0, between
    is_numbered = size <= MOST_NUMBERED
    shared: Trace = {
        "type": "heatmap", "zmin": 0, "zmax": 1, "xgap": 1, "ygap": 1, "hoverinfo": "text",
        "hovertext": hover, "hoverongaps": False, **({"texttemplate": "%{text}"} if is_numbered else {}),
    }  # fmt: skip
    bar = {"thickness": 10, "outlinewidth": 0, "title": {"text": "V"}}
    grey = [[0, "@line"], [1, "@line"]]
    data = [
        shared | {"z": values, "text": text, "colorscale": HEAT, "colorbar": bar},
        shared | {"z": known, "text": ends, "colorscale": grey, "showscale": False},
    ]
    longest = min(max(map(len, names)), 24)
    height, width = (30, 84) if is_numbered else (17, 17)
    tick = {"showgrid": False, **places(labels(names))}
    said = "Below the diagonal Cramer's V of each pair, above it the interval of V."
    return plotted(
        data, f"{said} The same figures are in the table below.", 110 + 6 * longest + height * size,
        axis("", **tick, tickangle=-60), axis("", **tick, autorange="reversed"),
        headroom=30, min_width=120 + 7 * longest + width * size,
    )  # fmt: skip


def print_pairs(estimates: PairEstimates) -> None:
    """Print the dependence of every pair, and what to know about it."""
    rows = [
        (" x ".join(names), f"{found.cramers_v:.3f}", f"{found.lower:.3f} to {found.upper:.3f}",
         f"{found.mutual_information:.4f}", f"{found.probability:.2f}", str(estimates.tables[names].reports))
        for names, found in _strongest(estimates)[:_MOST_ROWS]
    ]  # fmt: skip
    columns = ("pair", "Cramer's V", "interval", "nats shared", "P(dependent)", "reports")
    parts: list[RenderableType] = [headline(estimates)]
    if rows:
        parts.append(table_of("Dependence of pairs", columns, rows, left=("pair",)))
    left = len(estimates.dependence) - _MOST_ROWS
    more = [f"{left} further pairs: see --report or --json."] if left > 0 else []
    print_parts(
        parts, [*more, *notes(estimates), "The tables themselves are in --json, --output or --report."]
    )


def synthetic_notes(synthetic: Synthetic) -> list[str]:
    """Return what to know about synthetic people: how near their tables are, and what they may say."""
    worst = synthetic.rows()[0]
    pair = " and ".join(map(str, worst["attributes"]))  # type: ignore[call-overload]
    said = (
        f"Their tables are off by at most {worst['error']:.3f} in total variation ({pair}); drawing "
        f"{synthetic.people} people alone leads to about {worst['by_chance']:.3f}."
    )
    return [
        said,
        "They are made from the estimates alone: they spend no budget, and say nothing about a person that "
        "the reports do not say.",
    ]


def pair_advice_page(advice: PairAdvice) -> Page:
    """Return the page of advice for tables."""
    columns = (
        "collection",
        "error to expect",
        *(f"dependence {kind}" for kind in STRENGTHS),
        "people on pairs",
    )
    rows = [_advice_row(item) for item in advice.options]
    section = Section(
        "Collections by the error to expect", " ".join(pair_advice_notes(advice)), None, columns, rows
    )
    title = f"Sidelight advice on tables for {advice.people} people"
    return sections_page(title, f"Advised: {advice.advised.name}.", {"collections": section})


def _advice_row(item: PairOption) -> tuple[str, ...]:
    phases = "" if item.design.two_phase is None else ", first"
    errors = (error(item.error), *(error(value) for value in item.errors.values()))
    return (item.name, *errors, f"{item.pair_share:.0%}{phases}")


def pair_advice_notes(advice: PairAdvice) -> list[str]:
    """Return what a reader of the advice must know."""
    said = [
        f"Advised: {advice.advised.name}. Assumed: {advice.origin}.",
        "The error is the mean squared error of a cell, over all pairs; that not all are asked everything "
        "counts. Weak, middling and strong are tables like Dirichlet's with 256, 32 and 4 people around "
        "independence.",
    ]
    if advice.advised.design.two_phase is not None:
        said.append(
            "Two phases: collect with --protocol adaptive-pairs --share "
            f"{advice.advised.pair_share:.3g}, learn with estimate --learn, and collect from the others with "
            "--parameters."
        )
    said.append(
        f"Whatever is correlated with what, a person's report says at most {advice.leakage:.6g} nats about "
        "any secret (certified: the budget of a whole record)."
    )
    return [*said, *weak_budgets({"a record": advice.epsilon}), *advice.notes]


def print_pair_advice(advice: PairAdvice) -> None:
    """Print the collections in order of the error to expect of tables."""
    title = (
        f"Mean squared error of a cell to expect: {advice.people} people, epsilon {advice.epsilon:g} a record"
    )
    columns = ("collection", "error", *(f"if {kind}" for kind in STRENGTHS), "people on pairs")
    grid = table_of(title, columns, [_advice_row(item) for item in advice.options], left=("collection",))
    print_parts([grid], pair_advice_notes(advice))
