"""Progress of long work: silent in a library call, a bar where the command line asks for one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from itertools import repeat
from typing import TypeVar

T = TypeVar("T")
Description = str | Callable[[], str]
"""What is being done; a function is asked again after every item, for figures that change on the way."""
Tracker = Callable[[Iterable[T], Description, int | None], Iterable[T]]

_tracker: ContextVar[Tracker | None] = ContextVar("sidelight_progress", default=None)  # type: ignore[type-arg]


def track(items: Iterable[T], description: Description, total: int | None = None) -> Iterable[T]:
    """Iterate over `items` and report progress to the tracker, if there is one.

    A description that is a function is only called where a tracker shows it.
    """
    tracker = _tracker.get()
    if total is None and isinstance(items, Sequence):
        total = len(items)
    return items if tracker is None else tracker(items, description, total)


@contextmanager
def steps(description: Description) -> Iterator[Callable[[], None]]:
    """Yield what to call before each step of work that is no loop of ours, as a search by a library is."""

    def ticking() -> Generator[None]:
        yield from track(repeat(None), description)

    with closing(ticking()) as ticks:
        yield lambda: next(ticks)


@contextmanager
def tracking(tracker: Tracker[T]) -> Iterator[None]:
    """Let a tracker see every `track` inside: it may show progress, or stop the work by raising."""
    token = _tracker.set(tracker)
    try:
        yield
    finally:
        _tracker.reset(token)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show a bar on standard error for every `track` inside; nothing when that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # without a tracker no description is worked out either
        yield
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:

        def tracker(items: Iterable[T], description: Description, total: int | None) -> Iterable[T]:
            if isinstance(description, str):
                yield from progress.track(items, total=total, description=description)
                return
            task = progress.add_task(description(), total=total)
            try:
                for item in items:
                    yield item
                    progress.update(task, advance=1, description=description())
            finally:  # its figure is part of the result, so that the bar need not stay
                progress.remove_task(task)

        with tracking(tracker):
            yield
