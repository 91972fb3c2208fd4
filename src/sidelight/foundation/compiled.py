"""Which path a step takes: numpy, or a compiled loop that gives the same bits.

There is one rule for all steps that have both, so what happens to be loaded never changes a result. It weighs
the work of a step, rows times words a row, against what it costs to get the loop: nothing where it has run in
this process, about 4 ms where the compiler is loaded and the loop is cached on disk, and half a second or
more where the compiler must be loaded first.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Literal

Loop = Literal[
    "foundation.count_bits", "foundation.count_codes", "foundation.draw_bits", "foundation.fill_words",
    "mechanisms.add_steps", "mechanisms.choose_sets", "mechanisms.choose_small_sets",
    "mechanisms.count_marks", "mechanisms.flip_bits", "mechanisms.hash_codes", "mechanisms.overlay",
    "mechanisms.respond", "protocols.fill", "sources.count_tables", "sources.number_distinct",
]  # fmt: skip
"""The loops that stand for a step, each by its room, whose `kernels.py` has it, and its name."""

LARGE = 1 << 17
"""From so much work on, a loop is fetched whatever it costs."""
CACHED = 1 << 12
"""From so much work on, a loop is read from disk if the compiler is loaded."""
WARM = 1 << 7
"""From so much work on, a loop that has run in this process is called: a call costs a microsecond more."""
PATIENCE = 1 << 23
"""A loop is fetched once numpy has done so much of its work, bit by bit: a large table comes in batches."""

_PACKAGE = Path(__file__).resolve().parents[1]
_run: set[Loop] = set()
_waited: Counter[Loop] = Counter()
_least: int | None = None  # tests set it, to take one path or the other whatever is loaded


def use_loop(loop: Loop, rows: int, width: float = 1, *, waits: bool = True) -> bool:
    """Whether work on `rows` rows of `width` words each is done by a compiled loop.

    Args:
        loop: which one.
        rows: how many rows there are.
        width: how many words a row takes: those that are drawn, or what costs as much as drawing them.
        waits: whether small batches add up to a reason to fetch it; not where numpy is nearly as quick.
    """
    work = rows * width
    if _least is not None:
        return work >= _least
    if work < _enough(loop):
        _waited[loop] += int(work) if waits else 0
        return False
    _run.add(loop)
    return True


def _enough(loop: Loop) -> int:
    """Return how much work is enough for a loop as it is now."""
    if loop in _run:
        return WARM
    if _waited[loop] >= PATIENCE or ("numba" in sys.modules and _is_cached(loop)):
        return CACHED
    return LARGE


@cache
def _is_cached(loop: Loop) -> bool:
    """Whether numba's cache beside the source has the loop; where it is kept elsewhere, it counts as not."""
    room, _, name = loop.rpartition(".")
    return any((_PACKAGE / room / "__pycache__").glob(f"kernels.{name}-*.nbi"))
