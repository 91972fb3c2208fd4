"""Windows of time that a limit is about: what was spent before them counts no more.

Times are whole seconds since 1970 (UTC). A *sliding* window is that of w-event privacy (Kellaris et al.
2014): any `units` consecutive units of time, such as 30 days. A *year* is a calendar year and an *epoch* a
fixed period from the ledger's opening on; two of these side by side may spend twice the limit in a short
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self, get_args

from sidelight.foundation.errors import InputError, check_choice, check_whole

Kind = Literal["ever", "sliding", "year", "epoch"]
DAY = 86_400
LATEST = 1 << 37
"""The last second that is taken for a time, in the year 6325."""


@dataclass(frozen=True)
class Window:
    """A window of time.

    Attributes:
        kind: "ever", "sliding", "year" or "epoch".
        unit: seconds in a unit of a sliding window, or in an epoch; 0 where there is none.
        units: how many consecutive units a sliding window has; 0 where there is none.
    """

    kind: Kind
    unit: int = 0
    units: int = 0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(Kind))
        has_unit, has_units = self.kind in ("sliding", "epoch"), self.kind == "sliding"
        check_whole("unit", self.unit, at_least=int(has_unit), at_most=LATEST if has_unit else 0)
        check_whole("units", self.units, at_least=int(has_units), at_most=LATEST if has_units else 0)

    @classmethod
    def sliding(cls, *, days: int, of_days: int = 1) -> Self:
        """Return any `days` days in a row; counted in steps `of_days` days, by default of one.

        >>> str(Window.sliding(days=30))
        'any 30 days'
        """
        step = check_whole("of_days", of_days, at_least=1)
        count = check_whole("days", days, at_least=1)
        if count % step:
            raise InputError(f"`days` must be a multiple of `of_days`, {step}, got {count}.")
        return cls("sliding", step * DAY, count // step)

    @classmethod
    def epoch(cls, *, days: int) -> Self:
        """Return the periods of so many days from the ledger's opening on."""
        return cls("epoch", check_whole("days", days, at_least=1) * DAY)

    def leaves(self, then: int, opened: int) -> int | None:
        """Return from which second on what was spent at `then` counts no more; None if it always does.

        >>> Window.sliding(days=2).leaves(3 * DAY + 5, opened=0) == 5 * DAY
        True
        """
        match self.kind:
            case "ever":
                return None
            case "sliding":
                return (then // self.unit + self.units) * self.unit
            case "year":
                return int(datetime(datetime.fromtimestamp(then, UTC).year + 1, 1, 1, tzinfo=UTC).timestamp())
            case _:
                return opened + ((then - opened) // self.unit + 1) * self.unit

    def __str__(self) -> str:
        match self.kind:
            case "ever":
                return "all time"
            case "sliding":
                return f"any {_span(self.unit * self.units)}"
            case "year":
                return "a year"
            case _:
                return f"an epoch of {_span(self.unit)}"


EVER = Window("ever")
YEAR = Window("year")


def _span(seconds: int) -> str:
    count, noun = (seconds // DAY, "day") if seconds % DAY == 0 else (seconds, "second")
    return f"{count} {noun}{'' if count == 1 else 's'}"


def written(time: int) -> str:
    """Write a time for people.

    >>> written(0), written(1 << 60)
    ('1970-01-01 00:00:00 UTC', 'a time after the year 6325')
    """
    if time > LATEST:
        return "a time after the year 6325"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def check_time(name: str, value: object) -> int:
    """Return a time in whole seconds."""
    return check_whole(name, value, at_least=0, at_most=LATEST)
