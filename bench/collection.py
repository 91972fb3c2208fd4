"""One trial of the Corr-RR paper's four protocols, and all its figures."""

from __future__ import annotations

import math

import numpy as np

from bench.timing import Row, best_of, fastest, show
from sidelight.estimation.estimators import published
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.unbiased import unbiased
from sidelight.protocols import TwoPhase, rs_fd, rs_rfd, smp, spl
from sidelight.studies.corr_rr.records import PEOPLE, schema_of, star
from sidelight.studies.corr_rr.simulation import faked

ATTRIBUTES, VALUES, EPSILON = 4, 10, 1.0
AUTHORS = 4.9
"""Seconds that the authors' public code takes for the same trial on a 2-core machine, as measured once."""
LIMIT = 0.005


def main() -> None:
    """Print what one trial costs: SPL, RS+FD, RS+RFD and Corr-RR, reports and estimates."""
    rows = [_trial(), *(_sampled(people) for people in (10_000, 100_000, 1_000_000))]
    show("collection (peer: the authors' code as measured once; numpy: plain arrays)", rows)
    kept = "kept" if rows[0].ours <= LIMIT else "EXCEEDED"
    print(f"limit of {LIMIT * 1000:g} ms a trial: {kept} ({rows[0].ours * 1000:.2f} ms)")


def _trial() -> Row:
    records = star(ATTRIBUTES, VALUES, 0.9, trial=0)
    schema = schema_of(ATTRIBUTES, VALUES)
    truth = {
        name: np.bincount(records[:, i], minlength=VALUES) / PEOPLE for i, name in enumerate(schema.names)
    }
    split, fakes = spl(schema, EPSILON), rs_fd(schema, EPSILON)
    realistic = rs_rfd(schema, EPSILON, truth, "the true frequencies")
    design = TwoPhase(schema, EPSILON)
    cut = PEOPLE // 10

    def ours() -> None:
        unbiased([split.randomise(records, seed=1).aggregate()])
        faked(fakes, fakes.randomise(records, seed=2))
        faked(realistic, realistic.randomise(records, seed=3))
        first = design.first.randomise(records[:cut], seed=4)
        second = learn_second_phase(design, first, people=PEOPLE - cut).second.randomise(
            records[cut:], seed=5
        )
        published([first.aggregate(), second.aggregate()])

    rng = np.random.default_rng(1)
    plain = best_of(lambda: _plain_trial(records, truth, rng), 5)
    return Row("SPL + RS+FD + RS+RFD + Corr-RR, n = 10^4", AUTHORS, plain, best_of(ours, 100))


def _sampled(people: int) -> Row:
    """SMP with randomised response: one of ten attributes, as reports of each."""
    attributes = 10
    records = np.random.default_rng(2).integers(0, VALUES, (people, attributes)).astype(np.uint8)
    protocol = smp(schema_of(attributes, VALUES), EPSILON)
    rng = np.random.default_rng(3)

    def plain() -> list[np.ndarray]:
        chosen = rng.integers(0, attributes, people)
        said = _respond(records[np.arange(people), chosen], EPSILON, rng)
        return [said[chosen == j] for j in range(attributes)]

    warm = np.zeros((1 << 18, attributes), dtype=np.uint8)
    protocol.randomise(warm, seed=1)  # loads the compiled loops
    best = fastest({"plain": plain, "ours": lambda: protocol.randomise(records, seed=1)})
    return Row(f"SMP, 10 attributes, n = {people:,}", None, best["plain"], best["ours"])


def _plain_trial(records: np.ndarray, truth: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """The same four protocols in plain numpy, without exact thresholds or addressed randomness."""
    _counts(_respond(records, EPSILON / ATTRIBUTES, rng))
    for prior in (None, truth):
        _counts(_hide(records, rng, lambda said, j, p=prior: _fake(said, j, p, rng)))
    cut = len(records) // 10
    _counts(_respond(records[:cut], EPSILON / ATTRIBUTES, rng))
    _counts(_hide(records[cut:], rng, lambda said, _: _copy(said, 0.9, rng)))


def _respond(values: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    keep = math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1)
    lie = rng.integers(0, VALUES - 1, values.shape)
    lie += lie >= values
    return np.where(rng.random(values.shape) < keep, values, lie)


def _hide(records: np.ndarray, rng: np.random.Generator, fake) -> np.ndarray:
    chosen = rng.integers(0, ATTRIBUTES, len(records))
    said = _respond(records[np.arange(len(records)), chosen], EPSILON, rng)
    columns = [np.where(chosen == j, said, fake(said, j)) for j in range(ATTRIBUTES)]
    return np.stack(columns, axis=1)


def _fake(said: np.ndarray, attribute: int, prior, rng: np.random.Generator) -> np.ndarray:
    if prior is None:
        return rng.integers(0, VALUES, len(said))
    return rng.choice(VALUES, size=len(said), p=list(prior.values())[attribute])


def _copy(said: np.ndarray, probability: float, rng: np.random.Generator) -> np.ndarray:
    lie = rng.integers(0, VALUES - 1, len(said))
    lie += lie >= said
    return np.where(rng.random(len(said)) < probability, said, lie)


def _counts(reports: np.ndarray) -> list[np.ndarray]:
    return [np.bincount(column, minlength=VALUES) for column in reports.T]


if __name__ == "__main__":
    main()
