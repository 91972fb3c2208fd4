"""Advice for several rounds: ways to ask, the error to expect, what they spend and whom they expose."""

from __future__ import annotations

from collections.abc import Iterator

from sidelight.advice.rounds import AttributeRounds, RoundsAdvice, RoundsOption
from sidelight.report.collection import error
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Page, Section, sections_page
from sidelight.report.repeated import linked, percent
from sidelight.report.wording import decimals

COLUMNS = (
    "attribute", "way", "mechanism", "error of a level", "error of the mean", "spent", "if values change",
    "same person or not: right",
)  # fmt: skip
AT_DELTA = "at delta"
CHOICES = ("attribute", "if values stay the same", "if they change", "people before budget up to")


def rounds_advice_page(advice: RoundsAdvice) -> Page:
    """Return the page of advice for several rounds."""
    figures = ("error of a level", "error of the mean", "spent", "if values change")
    rows = [option_cells(item, option) for item in advice.attributes for option in item.options]
    sections = {
        "choice": Section(
            "Which way errs least", " ".join(rounds_notes(advice)), columns=CHOICES,
            rows=[choice_cells(item) for item in advice.attributes],
        ),
        "ways": Section("All ways", columns=_columns(advice), rows=rows, numbers=figures),
    }  # fmt: skip
    return sections_page(f"Sidelight advice for {advice.rounds} rounds", headline(advice), sections)


def headline(advice: RoundsAdvice) -> str:
    """Return the main finding in a sentence."""
    stay = {item.if_constant.name for item in advice.attributes}
    change = {item.if_changing.name for item in advice.attributes}
    return f"If values stay the same: {', '.join(sorted(stay))}. If they change: {', '.join(sorted(change))}."


def choice_cells(item: AttributeRounds) -> list[str]:
    """Return an attribute's cells, in the order of `CHOICES`."""
    crossing = "any budget" if item.crossing is None else f"a budget of {item.crossing:.3g}"
    return [item.attribute, item.if_constant.name, item.if_changing.name, crossing]


def option_cells(item: AttributeRounds, option: RoundsOption) -> list[str]:
    """Return a way's cells, in the order of `COLUMNS`."""
    release = option.release
    how = f"{release.mechanism} at {release.epsilon:.3g}"
    told = percent(0.5) if option.linking is None else linked(option.linking)
    spent = [decimals(option.spent), decimals(option.changing)]
    return [
        item.attribute,
        option.name,
        how,
        error(option.level_error),
        error(option.mean_error),
        *spent,
        told,
        *([] if option.at_delta is None else [decimals(option.at_delta)]),
    ]


def _columns(advice: RoundsAdvice) -> tuple[str, ...]:
    """Return the names of the columns, with that of figures at delta where they are asked for."""
    return COLUMNS if advice.delta is None else (*COLUMNS, AT_DELTA)


def rounds_notes(advice: RoundsAdvice) -> Iterator[str]:
    """Say what the figures are about."""
    yield (
        f"{advice.people:,} people, {advice.rounds} rounds, {advice.epsilon:g} nats of a record in all of "
        f"them together, divided evenly between the attributes; assumed: {advice.origin}."
    )
    yield (
        "Errors are mean squared errors about all these people: of the frequencies of one round, and of the "
        "mean over all rounds of values that stay the same."
    )
    yield (
        "A kept response spends its budget once while the value stays the same; in epochs, with the value "
        "frozen, once in each. It lets reports of a person be linked; half right is a guess."
    )
    if advice.epoch is not None:
        yield (
            f"In epochs of {advice.epoch} rounds a value is frozen at the first report: errors are of "
            "these values, which lag behind by up to an epoch."
        )
    if advice.delta is not None:
        yield (
            f"At delta {advice.delta:g}: what all reports say while the value stays the same, but with this "
            "probability. A budget divided at delta keeps to the whole in this sense alone."
        )
    yield "Budgets are of each attribute by itself: an audit of the plan says what correlated ones add."


def print_rounds_advice(advice: RoundsAdvice) -> None:
    """Print the ways to ask about every attribute, and which errs least."""
    words = COLUMNS[:3]
    grid = table_of(
        f"Ways to ask {advice.rounds} times", _columns(advice),
        [option_cells(item, option) for item in advice.attributes for option in item.options], left=words,
    )  # fmt: skip
    choices = table_of(
        "Which way errs least", CHOICES, [choice_cells(i) for i in advice.attributes], left=CHOICES
    )
    print_parts([headline(advice), choices, grid], rounds_notes(advice))
