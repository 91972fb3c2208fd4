"""Repeated reports beside multi-freq-ldpy's longitudinal module: speed, and error at equal realised budgets.

`python -m bench.longitudinal` prints reports per second of the peer, of a good plain numpy version and of
ours, five rounds of each device; then the mean squared error of one round. The peer draws a new permanent
response on every call, so that its rounds keep nothing; ours make it once. Its L-GRR, and with it its
hashing, forget a term and spend less on the first report than asked: errors are compared at the budget that
it really spends, and beside that at the one asked for. Both post-process as the peer does.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sidelight.mechanisms import create
from sidelight.mechanisms.longitudinal.device import simulate_rounds

SIZE, EPSILON, FIRST, TIMES = 100, 2.0, 1.0, 5
PROMISED = 50.0
TRIALS, PEOPLE = 2_000, 1_000
BUCKETS, BITS = 3, 4  # the peer's choice of buckets at these budgets; bits of a dBitFlipPM report
Peer = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Task:
    """One row of the table of speeds: the peer's client, a plain numpy version, and our name and rows."""

    name: str
    client: Callable[[int], object]
    plain: Callable[[np.random.Generator, np.ndarray], object]
    rows: int
    plain_rows: int


def main() -> int:
    """Print both tables; return 1 if we are not 50 times as fast as the peer."""
    warnings.simplefilter("ignore")
    missed = _speeds()
    _errors()
    return int(missed)


def _speeds() -> bool:
    print(f"k = {SIZE}, {EPSILON:g}/{FIRST:g}, {TIMES} rounds; reports/s")
    print(f"{'oracle':<12}{'multi-freq-ldpy':>18}{'numpy':>12}{'ours':>12}{'x peer':>9}{'x numpy':>9}")
    rng, missed = np.random.default_rng(0), False
    values = rng.integers(0, SIZE, 1_000_000).astype(np.uint8)
    for task in tasks():
        few, some, many = values[:2_000].tolist(), values[: task.plain_rows], values[: task.rows]
        peer = _rate(lambda few=few, task=task: [task.client(value) for value in few], len(few))
        plain = _rate(lambda some=some, task=task: task.plain(rng, some), TIMES * len(some))
        ours = _rate(lambda many=many, task=task: _run(task.name, many), TIMES * len(many))
        missed |= ours < PROMISED * peer
        print(
            f"{task.name:<12}{peer:>18.2e}{plain:>12.2e}{ours:>12.2e}{ours / peer:>9.0f}{ours / plain:>9.1f}",
            flush=True,
        )
    return missed


def _run(name: str, values: np.ndarray) -> None:
    """Have everybody report in all rounds; one that sends its memo as it is makes it once."""
    oracle = create(name, SIZE, EPSILON, **({} if name == "dbitflip" else {"first": FIRST}))
    if name == "dbitflip":
        oracle.randomise(values, seed=1)
        return
    for _ in simulate_rounds(oracle, values, times=TIMES, seed=1):
        pass


def _rate(run: Callable[[], object], reports: int, rounds: int = 3) -> float:
    run()
    best = math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return reports / best


def tasks() -> list[Task]:
    """Return what is timed."""
    from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client
    from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Client
    from multi_freq_ldpy.long_freq_est.L_LH import L_LH_Client
    from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Client
    from multi_freq_ldpy.long_freq_est.L_OUE import L_OUE_Client
    from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client

    def asked(client: Callable[..., object]) -> Callable[[int], object]:
        return lambda value: client(value, SIZE, EPSILON, FIRST)

    return [
        Task("l-grr", asked(L_GRR_Client), numpy_grr, 1_000_000, 300_000),
        Task("l-sue", asked(L_SUE_Client), numpy_bits("l-sue"), 200_000, 20_000),
        Task("l-oue", asked(L_OUE_Client), numpy_bits("l-oue"), 200_000, 20_000),
        Task("l-osue", asked(L_OSUE_Client), numpy_bits("l-osue"), 200_000, 20_000),
        Task("loloha", asked(L_LH_Client), numpy_hashing, 1_000_000, 300_000),
        Task(
            "dbitflip",
            lambda value: dBitFlipPM_Client(value, SIZE, SIZE, BITS, EPSILON),
            numpy_flips,
            200_000,
            100_000,
        ),
    ]


def _response(rng: np.random.Generator, codes: np.ndarray, size: int, truth: float) -> np.ndarray:
    lie = rng.integers(0, size - 1, len(codes), dtype=np.uint8)
    lie += lie >= codes
    return np.where(rng.random(len(codes), dtype=np.float32) < truth, codes, lie)


def numpy_grr(rng: np.random.Generator, values: np.ndarray) -> list[np.ndarray]:
    """L-GRR as one would write it with numpy: the memo once, a response to it in each round."""
    oracle = create("l-grr", SIZE, EPSILON, first=FIRST)
    memos = _response(rng, values, SIZE, float(oracle.permanent_rates[0]))
    return [_response(rng, memos, SIZE, float(oracle.instant_rates[0])) for _ in range(TIMES)]


def numpy_bits(name: str) -> Callable[[np.random.Generator, np.ndarray], list[np.ndarray]]:
    """Return kept bits as one would write them with numpy."""
    oracle = create(name, SIZE, EPSILON, first=FIRST)
    (p, q), (kept, made) = (
        [np.uint16(float(rate) * (1 << 16)) for rate in rates]
        for rates in (oracle.permanent_rates, oracle.instant_rates)
    )

    def run(rng: np.random.Generator, values: np.ndarray) -> list[np.ndarray]:
        def words() -> np.ndarray:
            return rng.integers(0, 1 << 16, (len(values), SIZE), dtype=np.uint16)

        memos = words() < np.where(np.arange(SIZE) == values[:, None], p, q)
        return [np.packbits(words() < np.where(memos, kept, made), axis=1) for _ in range(TIMES)]

    return run


def numpy_hashing(rng: np.random.Generator, values: np.ndarray) -> list[np.ndarray]:
    """LOLOHA as one would write it with numpy."""
    oracle = create("loloha", SIZE, EPSILON, first=FIRST)
    seeds = rng.integers(0, 1 << 64, len(values), dtype=np.uint64)
    hashed = ((seeds >> np.uint64(32)) * values + seeds & np.uint64(0xFFFFFFFF)) >> np.uint64(15)
    buckets = ((hashed * np.uint64(oracle.buckets)) >> np.uint64(17)).astype(np.uint8)
    memos = _response(rng, buckets, oracle.buckets, float(oracle.cell_response.mark_rates[0]))
    return [_response(rng, memos, oracle.buckets, float(oracle.instant_rates[0])) for _ in range(TIMES)]


def numpy_flips(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """DBitFlipPM as one would write it with numpy: what is kept is sent in every round."""
    asked = np.argpartition(rng.random((len(values), SIZE), dtype=np.float32), 3, axis=1)[:, :4]
    flip = 1 / (math.exp(EPSILON / 2) + 1)
    return (asked == values[:, None]) ^ (rng.random(asked.shape, dtype=np.float32) < flip)


def _errors() -> None:
    """Print the error of one round, theirs over ours, and the standard errors of the ratios."""
    print(f"\nmean squared error of one round, {PEOPLE:,} people; the peer's over ours (standard error)")
    print(f"{'oracle':<12}{'k':>5}{'trials':>8}{'peer spends':>13}{'at that budget':>18}{'as asked':>18}")
    peers = _peers()
    for name, size in [*((name, 16) for name in peers), ("l-grr", 4)]:
        kept = {"l-grr": peer_first(size), "loloha": peer_first(BUCKETS), "dbitflip": EPSILON}
        spent = kept.get(name, FIRST)
        theirs = _errors_of(lambda codes, run=peers[name], k=size: run(codes, k), size)
        cells = []
        for first in (spent, FIRST):
            ours = _errors_of(lambda codes, n=name, k=size, f=first: _ours(n, k, f, codes), size)
            spread = math.hypot(*(part.std() / part.mean() / math.sqrt(len(part)) for part in (theirs, ours)))
            ratio = theirs.mean() / ours.mean()
            cells.append(f"{ratio:>10.2f} ({ratio * spread:.2f})")
        print(f"{name:<12}{size:>5}{len(theirs):>8}{spent:>13.3f}{cells[0]:>18}{cells[1]:>18}", flush=True)


def peer_first(size: int) -> float:
    """Return what the peer's L-GRR really spends on its first report."""
    e, f = math.exp(EPSILON), math.exp(FIRST)
    p, q = e / (e + size - 1), 1 / (e + size - 1)
    kept = (q - f * p) / (-p * f + size * q * f - q * f - p * (size - 1) + q)
    made = (1 - kept) / (size - 1)
    return math.log((p * kept + (size - 1) * q * made) / (p * made + q * kept + (size - 2) * q * made))


def _errors_of(run: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Return the mean squared error of each trial; of few values there are more trials."""
    rng = np.random.default_rng(7)
    shares = 1 / np.arange(1, size + 1)
    shares /= shares.sum()
    errors = []
    for _ in range(TRIALS // size):
        codes = rng.choice(size, PEOPLE, p=shares)
        seen = np.bincount(codes, minlength=size) / PEOPLE
        errors.append(((run(codes) - seen) ** 2).mean())
    return np.array(errors)


def _peers() -> dict[str, Peer]:
    """Return what the peer estimates from one report of each code."""
    from multi_freq_ldpy.long_freq_est import L_GRR, L_LH, L_OSUE, L_OUE, L_SUE, dBitFlipPM

    def asked(client: Callable[..., object], server: Callable[..., object], is_told: bool = False) -> Peer:
        def run(codes: np.ndarray, size: int) -> np.ndarray:
            reports = [client(code, size, EPSILON, FIRST) for code in codes.tolist()]
            return np.asarray(server(reports, *([size] if is_told else []), EPSILON, FIRST))

        return run

    def flipped(codes: np.ndarray, size: int) -> np.ndarray:
        reports = [dBitFlipPM.dBitFlipPM_Client(code, size, size, BITS, EPSILON) for code in codes.tolist()]
        return np.asarray(dBitFlipPM.dBitFlipPM_Aggregator_MI(reports, size, BITS, EPSILON))

    return {
        "l-grr": asked(L_GRR.L_GRR_Client, L_GRR.L_GRR_Aggregator_MI, is_told=True),
        "l-sue": asked(L_SUE.L_SUE_Client, L_SUE.L_SUE_Aggregator_MI),
        "l-oue": asked(L_OUE.L_OUE_Client, L_OUE.L_OUE_Aggregator_MI),
        "l-osue": asked(L_OSUE.L_OSUE_Client, L_OSUE.L_OSUE_Aggregator_MI),
        "loloha": asked(L_LH.L_LH_Client, L_LH.L_LH_Aggregator_MI, is_told=True),
        "dbitflip": flipped,
    }


_SEEDS = iter(range(1 << 62))


def _ours(name: str, size: int, first: float, codes: np.ndarray) -> np.ndarray:
    oracle = create(name, size, EPSILON, **({"d": BITS} if name == "dbitflip" else {"first": first}))
    raw = oracle.estimate(oracle.aggregate(oracle.randomise(codes, seed=next(_SEEDS)))).clip(0)
    return np.asarray(raw / raw.sum())


if __name__ == "__main__":
    raise SystemExit(main())
