"""Attributes that are simulated for others: few enough, and with nearly the errors of their own."""

from __future__ import annotations

import numpy as np
import pytest

import sidelight as sl
from sidelight.estimation import stand_ins
from sidelight.estimation.stand_ins import StandIns
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.protocols import smp
from sidelight.protocols.groups import BEST

FEW = 1_000


def attributes(sizes: list[int], *, share_values: bool = False) -> sl.Schema:
    return sl.Schema(
        tuple(
            sl.categorical(f"x{place}", [f"{0 if share_values else place}/{value}" for value in range(size)])
            for place, size in enumerate(sizes)
        )
    )


def power_laws(schema: sl.Schema, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Frequencies from even to very uneven, the commonest values anywhere."""
    laws = {}
    for attribute in schema:
        law = rng.permutation(np.arange(1, attribute.size + 1.0) ** -rng.uniform(0, 1.8))
        laws[attribute.name] = law / law.sum()
    return laws


def test_few_values_are_simulated_of_many() -> None:
    schema = attributes([2] * 5000 + list(range(2, 400)) + [5_000] * 3)
    even = {item.name: np.full(item.size, 1 / item.size) for item in schema}
    chosen = StandIns.of(schema, even, {name: share / 10 for name, share in even.items()})
    work = [schema[name].size for name in chosen.simulated]
    assert 0.5 * stand_ins.MOST_VALUES < sum(work) < 2 * stand_ins.MOST_VALUES + 5_000
    assert set(chosen.chosen) == set(schema.names)
    assert all(
        schema[name].size / schema[other].size == pytest.approx(1, abs=0.45)
        for name, other in chosen.chosen.items()
    )


def test_few_attributes_are_simulated_one_and_all() -> None:
    schema = attributes([2, 30, 100])
    even = {item.name: np.full(item.size, 1 / item.size) for item in schema}
    assert StandIns.of(schema, even, even).simulated == list(schema.names)


def test_of_those_that_share_values_one_is_not_simulated_alone() -> None:
    schema = attributes([2_000] * 5, share_values=True)
    even = {item.name: np.full(item.size, 1 / item.size) for item in schema}
    chosen = StandIns.of(schema, even, even)
    assert len(chosen.simulated) == 2
    assert chosen.sharing == {schema["x0"].values: 5}


@pytest.mark.parametrize(("epsilon", "people"), [(1.0, 1_000), (1.0, 100_000), (4.0, 1_000_000)])
@pytest.mark.parametrize("case", ["unknown", "known", "shared values", "shared frequencies"])
def test_errors_are_nearly_those_of_simulating_everyone(
    case: str, epsilon: float, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two draws vary by about a tenth themselves, more where all lean on their average; seeds are fixed."""
    rng = np.random.default_rng(11)
    shared = case.startswith("shared")
    sizes = [60] * 50 if shared else [int(size) for size in rng.integers(2, 120, 50)]
    schema = attributes(sizes, share_values=shared)
    frequencies = None if case == "unknown" else power_laws(schema, rng)
    if frequencies and case == "shared frequencies":
        frequencies = dict.fromkeys(schema.names, frequencies["x0"])
    design = smp(schema, epsilon, BEST)

    def predicted(most: int) -> Usefulness:
        monkeypatch.setattr(stand_ins, "MOST_VALUES", most)
        return usefulness(design, people, frequencies)

    everyone, some = predicted(1 << 30), predicted(FEW)
    assert some.error == pytest.approx(everyone.error, rel=0.3)
    ratios = [
        one.error / other.error for one, other in zip(some.attributes, everyone.attributes, strict=True)
    ]
    assert np.median(ratios) == pytest.approx(1, abs=0.2 if case == "shared frequencies" else 0.1)
    assert np.quantile(ratios, 0.1) > 0.5
    assert np.quantile(ratios, 0.9) < 2


def test_errors_go_with_the_noise_and_the_values_that_are_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """A noisier attribute is not as good as the one that stands in for it, and errs at its own values."""
    monkeypatch.setattr(stand_ins, "MOST_VALUES", 4)
    schema = attributes([4, 4])
    truth = {"x0": np.array([0.7, 0.1, 0.1, 0.1]), "x1": np.array([0.1, 0.1, 0.1, 0.7])}
    chosen = StandIns.of(schema, truth, {"x0": np.full(4, 1e-6), "x1": np.full(4, 1.21e-6)})
    assert chosen.simulated == ["x1"]
    found = chosen.everyone({"x1": np.array([[0.0, 0.0, 0.0, 1.0]])})
    assert found["x1"].tolist() == [[0, 0, 0, 1]]
    assert found["x0"][0].tolist() == pytest.approx([1 / 1.1, 0, 0, 0], rel=1e-4)
