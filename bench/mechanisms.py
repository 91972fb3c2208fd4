"""Speed of the mechanisms beside the two best-known packages, in one run on one machine.

`python -m bench.mechanisms` prints for each task the best of pure-ldp and multi-freq-ldpy, a good plain numpy
version, ours, and the ratios. The packages are called as their documentation does: a client for each
person in a list, a server on the list of reports. Peers get fewer rows, as they are slower; rates are rows
per second, the best of several rounds that alternate between all contestants, so that a noisy moment hits
them alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.timing import SHOWN, Row, fastest
from sidelight.mechanisms import Reports, create

SIZE = 100
EPSILON = 1.0
HASHES = 1_000
"""So many hash functions pure-ldp's fast variant draws from."""


@dataclass(frozen=True)
class Task:
    """One row of the table: what is timed, by whom, on how many rows, and the ratio we promise."""

    name: str
    peers: dict[str, tuple[Callable[[], object], int]]
    plain: tuple[Callable[[], object], int]
    ours: tuple[Callable[[], object], int]
    promised: float = 0.0


def main() -> int:
    """Run every task and print the table; return 1 if a promised ratio is missed."""
    warnings.simplefilter("ignore")
    title = "k = 100, eps = 1; rows/s"
    print(f"{title:<36}{'best peer':>26}{'numpy':>10}{'ours':>10}{'x peer':>9}{'x numpy':>9}{'promised':>10}")
    missed = False
    for task in [*randomise_tasks(), *estimate_tasks()]:
        rates = _rates(task)
        peer = max(task.peers, key=rates.__getitem__, default="")
        ratio = rates["ours"] / rates[peer] if peer else np.nan
        missed |= bool(ratio < task.promised)
        shown = f"{peer} {rates[peer]:.2e}" if peer else "-"
        per_million = {name: 1e6 / rate for name, rate in rates.items()}
        SHOWN.append(
            (title, Row(task.name, per_million.get(peer), per_million["numpy"], per_million["ours"]))
        )
        print(
            f"{task.name:<36}{shown:>26}{rates['numpy']:>10.2e}{rates['ours']:>10.2e}{ratio:>9.1f}"
            f"{rates['ours'] / rates['numpy']:>9.2f}{task.promised:>10.0f}",
            flush=True,
        )
    return int(missed)


def _rates(task: Task) -> dict[str, float]:
    """Return the rows per second of every contestant, by name."""
    runs = {**task.peers, "numpy": task.plain, "ours": task.ours}
    taken = fastest({name: run for name, (run, _) in runs.items()})
    return {name: rows / taken[name] for name, (_, rows) in runs.items()}


def randomise_tasks() -> list[Task]:
    """Return the tasks on the side of the people."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
    from pure_ldp.frequency_oracles.direct_encoding import DEClient
    from pure_ldp.frequency_oracles.histogram_encoding import HEClient
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient, LHClient
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    rng = np.random.default_rng(0)
    many = rng.integers(0, SIZE, 4_000_000).astype(np.uint8)
    some, few = many[:1_000_000], many[:100_000]
    people = many[:20_000].tolist()
    shifted = [value + 1 for value in people]

    def freq(client: Callable[..., object]) -> tuple[Callable[[], object], int]:
        return lambda: [client(value, SIZE, EPSILON) for value in people], len(people)

    def pure(client: object) -> tuple[Callable[[], object], int]:
        return lambda: [client.privatise(value) for value in shifted], len(people)

    def ours(name: str, values: np.ndarray, seed: int | None = 1) -> tuple[Callable[[], object], int]:
        mechanism = create(name, SIZE, EPSILON)
        return lambda: mechanism.randomise(values, seed=seed), len(values)

    def plain(function: Callable[..., object], values: np.ndarray) -> tuple[Callable[[], object], int]:
        return lambda: function(rng, values), len(values)

    grr = {"multi-freq-ldpy": freq(GRR_Client), "pure-ldp": pure(DEClient(EPSILON, SIZE))}
    return [
        Task("GRR randomise", grr, plain(numpy_grr, some), ours("grr", many), 100),
        Task("GRR randomise, secure", grr, plain(numpy_grr, some), ours("grr", many, None), 10),
        Task(
            "OUE randomise",
            {"multi-freq-ldpy": freq(UE_Client), "pure-ldp": pure(UEClient(EPSILON, SIZE, use_oue=True))},
            plain(numpy_oue, few),
            ours("oue", some),
            100,
        ),
        Task(
            "OLH randomise",
            {
                "multi-freq-ldpy": freq(LH_Client),
                "pure-ldp": pure(LHClient(EPSILON, SIZE, use_olh=True)),
                "pure-ldp FastLH": pure(FastLHClient(EPSILON, SIZE, HASHES, use_olh=True)),
            },
            plain(numpy_olh, some),
            ours("olh", some),
            100,
        ),
        Task(
            "SS randomise", {"multi-freq-ldpy": freq(SS_Client)}, plain(numpy_ss, few), ours("ss", some), 20
        ),
        Task(
            "SHE randomise",
            {"multi-freq-ldpy": freq(HE_Client), "pure-ldp": pure(HEClient(EPSILON, SIZE))},
            plain(numpy_she, few),
            ours("she", few),
            4,
        ),
    ]


def estimate_tasks() -> list[Task]:
    """Return the tasks on the side of the server: from reports to frequencies."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
    from pure_ldp.frequency_oracles.direct_encoding import DEServer
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient, FastLHServer, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEServer

    values = np.random.default_rng(1).integers(0, SIZE, 4_000_000).astype(np.uint8)
    people = values[:20_000].tolist()
    bits = [UE_Client(value, SIZE, EPSILON) for value in people]
    hashed = [LH_Client(value, SIZE, EPSILON) for value in people[:2_000]]

    def ours(name: str, rows: int) -> tuple[Callable[[], object], int]:
        mechanism = create(name, SIZE, EPSILON)
        reports = mechanism.randomise(values[:rows], seed=1)
        return lambda: mechanism.estimate(mechanism.aggregate(reports)), rows

    def pure(make: Callable[[], object], reports: list[object]) -> tuple[Callable[[], object], int]:
        def run() -> object:
            server = make()
            server.aggregate_all(reports)
            return server.estimate_all(range(1, SIZE + 1), suppress_warnings=True)

        return run, len(reports)

    client = FastLHClient(EPSILON, SIZE, HASHES, use_olh=True)
    fast = [client.privatise(value + 1) for value in people]
    table = FastLHServer(EPSILON, SIZE, HASHES, use_olh=True).hash_matrix  # made once, as one would
    codes = create("grr", SIZE, EPSILON).randomise(values[:1_000_000], seed=1).values
    rows = np.array(bits, dtype=np.uint8)
    olh = create("olh", SIZE, EPSILON).randomise(values[:50_000], seed=1)
    return [
        Task(
            "GRR estimate",
            {
                "multi-freq-ldpy": (lambda: GRR_Aggregator_MI(people, SIZE, EPSILON), len(people)),
                "pure-ldp": pure(lambda: DEServer(EPSILON, SIZE), people),
            },
            (lambda: np.bincount(codes, minlength=SIZE), len(codes)),
            ours("grr", 4_000_000),
            50,
        ),
        Task(
            "OUE estimate",
            {
                "multi-freq-ldpy": (lambda: UE_Aggregator_MI(bits, EPSILON), len(bits)),
                "pure-ldp": pure(lambda: UEServer(EPSILON, SIZE, use_oue=True), bits),
            },
            (lambda: rows.sum(axis=0), len(rows)),
            ours("oue", 1_000_000),
            50,
        ),
        Task(
            "OLH estimate",
            {
                "multi-freq-ldpy": (lambda: LH_Aggregator_MI(hashed, SIZE, EPSILON), len(hashed)),
                "pure-ldp": pure(lambda: LHServer(EPSILON, SIZE, use_olh=True), hashed),
                "pure-ldp FastLH": pure(
                    lambda: FastLHServer(EPSILON, SIZE, HASHES, use_olh=True, hash_matrix=table), fast
                ),
            },
            (lambda: numpy_olh_support(olh.seeds, olh.values), len(olh)),
            ours("olh", 1_000_000),
            20,
        ),
        *_small_tasks(),
    ]


def _small_tasks() -> list[Task]:
    """Return estimates whose reports are many numbers, or whose values are few."""
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Aggregator_MI
    from pure_ldp.frequency_oracles.histogram_encoding import HEServer

    tasks = []
    for size, people in ((8, 100_000), (100, 20_000), (1000, 5_000)):
        mechanism = create("she", size, EPSILON)
        reports = mechanism.randomise(np.arange(people) % size, seed=1)
        rows, few = reports.values, list(reports.values)
        peers = {"multi-freq-ldpy": (_she_mean(HE_Aggregator_MI, few, size), people)}
        peers["pure-ldp"] = (_she_server(HEServer, few, size), people)
        tasks.append(
            Task(
                f"SHE estimate, k = {size}",
                peers,
                (lambda rows=rows: rows.mean(axis=0), people),
                (lambda m=mechanism, r=reports: m.estimate(m.aggregate(r)), people),
            )
        )
    hashed = (("olh", 2, None), ("olh", 4, None), ("olh", 8, None))
    for name, size, plain in (("hadamard", 100, numpy_hadamard), *hashed):
        mechanism = create(name, size, EPSILON)
        for people in (10_000, 100_000):
            reports = mechanism.randomise(np.arange(people) % size, seed=1)
            run = plain or (lambda r, size=size: numpy_olh_support(r.seeds, r.values, size))
            tasks.append(
                Task(
                    f"{name} estimate, k = {size}, n = {people:,}",
                    {},
                    (lambda run=run, r=reports: run(r), people),
                    (lambda m=mechanism, r=reports: m.estimate(m.aggregate(r)), people),
                )
            )
    return tasks


def _she_mean(aggregator: Callable[..., object], reports: list, size: int) -> Callable[[], object]:
    return lambda: aggregator(reports, size, EPSILON, use_thresh=False)


def _she_server(make: Callable[..., object], reports: list[np.ndarray], size: int) -> Callable[[], object]:
    def run() -> object:
        server = make(EPSILON, size)
        server.aggregate_all(reports)
        return server.estimate_all(range(1, size + 1), suppress_warnings=True)

    return run


def numpy_grr(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Randomised response as one would write it with numpy."""
    truth = np.exp(EPSILON) / (np.exp(EPSILON) + SIZE - 1)
    lie = rng.integers(0, SIZE - 1, len(values), dtype=np.uint8)
    lie += lie >= values
    return np.where(rng.random(len(values), dtype=np.float32) < truth, values, lie)


def numpy_oue(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Optimised unary encoding as one would write it with numpy."""
    flip = 1 / (np.exp(EPSILON) + 1)
    bits = rng.integers(0, 1 << 16, (len(values), SIZE), dtype=np.uint16) < np.uint16(flip * (1 << 16))
    bits[np.arange(len(values)), values] = rng.integers(0, 2, len(values), dtype=np.uint8)
    return np.packbits(bits, axis=1)


def numpy_olh(rng: np.random.Generator, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Optimised local hashing as one would write it with numpy."""
    seeds = rng.integers(0, 1 << 64, len(values), dtype=np.uint64)
    bucket = ((seeds >> np.uint64(32)) * values + seeds & np.uint64(0xFFFFFFFF)) >> np.uint64(30)
    lie = rng.integers(0, 3, len(values), dtype=np.uint8)
    lie += lie >= bucket
    truth = np.exp(EPSILON) / (np.exp(EPSILON) + 3)
    return seeds, np.where(rng.random(len(values), dtype=np.float32) < truth, bucket, lie)


def numpy_hadamard(reports: Reports) -> np.ndarray:
    """Count columns and transform the counts with numpy."""
    counts = np.bincount(reports.values, minlength=128)
    span = 1
    while span < len(counts):
        pairs = counts.reshape(-1, 2, span)
        counts = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        span *= 2
    return counts


def numpy_olh_support(seeds: np.ndarray, values: np.ndarray, size: int = SIZE) -> np.ndarray:
    """Count the support of every value with numpy."""
    high, low = (seeds >> np.uint64(32)).astype(np.uint32), seeds.astype(np.uint32)
    return np.array(
        [np.count_nonzero((high * np.uint32(v) + low) >> np.uint32(30) == values) for v in range(size)]
    )


def numpy_ss(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Subset selection as one would write it with numpy: the first w of a random order."""
    width = create("ss", SIZE, EPSILON).width
    keys = rng.random((len(values), SIZE), dtype=np.float32)
    include = width * np.exp(EPSILON) / (width * np.exp(EPSILON) + SIZE - width)
    keys[np.arange(len(values)), values] = np.where(rng.random(len(values)) < include, -1.0, 2.0)
    return np.sort(np.argpartition(keys, width - 1, axis=1)[:, :width], axis=1)


def numpy_she(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Summation histogram encoding as one would write it with numpy."""
    noisy = rng.laplace(scale=2 / EPSILON, size=(len(values), SIZE))
    noisy[np.arange(len(values)), values] += 1
    return noisy


if __name__ == "__main__":
    raise SystemExit(main())
