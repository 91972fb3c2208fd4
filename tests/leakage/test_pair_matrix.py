"""All pairs at once, beside one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest

from sidelight.belief import Belief
from sidelight.leakage.pair import pair_leakage, pair_matrix
from sidelight.mechanisms import create


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("names", ["grr grr grr grr", "grr ss oue any", "any any any hadamard"])
def test_the_matrix_has_the_figures_of_every_pair(names: str, missing: bool) -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 6, (2, 3, 2, 4))
    if missing:
        counts[:, 1] = 0  # a value that cannot occur
    belief = Belief.from_counts(counts, list("abcd"))
    each = zip(belief.schema, names.split(), (0.5, 1.0, 1.5, 2.0), strict=True)
    channels = {item.name: create(name, item.size, budget).channel for item, name, budget in each}
    matrix = pair_matrix(belief, channels, ["d", "a", "b", "c"])
    assert len(matrix) == 4
    assert matrix.values.shape == (4, 4)
    for name, row, values in zip(channels, matrix, matrix.values, strict=True):
        for secret, cell, value in zip(matrix.secrets, row, values, strict=True):
            if name == secret:
                assert cell is None
                assert np.isnan(value)
                continue
            alone = pair_leakage(belief, channels[name], secret, name)
            assert cell.value == value
            assert value == pytest.approx(alone.value, abs=1e-12)
            assert (cell.secret, cell.through) == (secret, (name,))
            assert cell.upper.support == alone.upper.support
    assert matrix[0][0] is matrix[0][0]
