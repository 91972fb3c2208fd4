"""Speed of the label protocols and learners: seconds of a peer, of plain numpy and of ours.

No public implementation of kHR exists. With omega = 1 it is subset selection of the pair, so the peer is that
of multi-freq-ldpy, timed on 2,000 people and scaled up; the plain numpy version ranks random keys.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import sidelight as sl
from bench.timing import DATA, Row, best_of, show
from sidelight.labels import HeadsResponse, Omega, best_width
from sidelight.labels.collection import LabelSettings
from sidelight.learning.bayes import private_bayes
from sidelight.learning.cart import private_tree
from sidelight.learning.learnt import labelled_rows
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.studies.clldp.records import synthetic_conditionals, synthetic_rows

PEOPLE = 1_000_000
_PEER_PEOPLE = 2_000


def main() -> None:
    """Print the seconds of 1,000,000 people through kHR and back, and of the learners on adult."""
    warnings.simplefilter("ignore")
    show("labels: 1,000,000 people, 250 pairs, eps = 1, reports and back to the joint", _heads_rows())
    learners = _learner_rows()
    if learners:
        show("labels: learners on adult (48,842 people, 14 attributes), eps = 1", learners)


def _heads_rows() -> list[Row]:
    timings = []
    for name in ("U(1,50)", "N(25,1)", "D(25)"):
        omega = Omega.known(synthetic_conditionals(name))
        width = best_width(250, 1.0, omega.curve)
        response = HeadsResponse(50, 5, 1.0, width, omega.at(width))
        rows = synthetic_rows(name, PEOPLE, np.random.default_rng(1))
        pairs = rows.codes[:, 0].astype(np.int64) * 5 + rows.labels
        few = pairs[: PEOPLE // 20]

        def ours(response=response, rows=rows) -> object:
            reports = response.randomise(rows.codes[:, 0], rows.labels)
            return response.joint(response.aggregate(reports))

        plain = best_of(lambda few=few, response=response: _plain(few, response), 1) * 20
        timings.append(Row(f"kHR, {name}, k = {width}", _peer(pairs), plain, best_of(ours)))
    return timings


def _plain(pairs: np.ndarray, response: HeadsResponse) -> np.ndarray:
    """Rank random keys: the true pair first or last, then the k smallest."""
    rng = np.random.default_rng(1)
    p, q = float(response.mechanism.mark_if_true), float(response.mechanism.mark_if_other)
    keys = rng.random((len(pairs), 250), dtype=np.float32)
    keys[np.arange(len(pairs)), pairs] = np.where(rng.random(len(pairs)) < p, -1.0, 2.0)
    sets = np.argpartition(keys, response.width, axis=1)[:, : response.width]
    counts = np.bincount(sets.reshape(-1), minlength=250)
    return (counts / len(pairs) - q) / (p - q)


def _peer(pairs: np.ndarray) -> float | None:
    try:
        from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    except ImportError:
        return None
    SS_Client(int(pairs[0]), 250, 1.0)  # compiles
    start = time.perf_counter()
    reports = [SS_Client(int(pair), 250, 1.0) for pair in pairs[:_PEER_PEOPLE]]
    SS_Aggregator_MI(reports, 250, 1.0)
    return (time.perf_counter() - start) * PEOPLE / _PEER_PEOPLE


def _learner_rows() -> list[Row]:
    path = DATA / "adult.parquet"
    if not path.exists():
        print(f"adult: no such table at {DATA}; set SIDELIGHT_DATA")
        return []
    rows, _, _ = labelled_rows(sl.read(str(path), drop=["split"]), "income")
    timings = [Row("Naive Bayes", None, None, best_of(lambda: private_bayes(rows, LabelSettings(1.0))))]
    for scheme in ("turns", "leaves", "published"):
        tree = TreeSettings(1.0, 5, scheme, caution=0.0 if scheme == "published" else 3.0)
        settings = LabelSettings(1.0, omega="known")
        seconds = best_of(lambda tree=tree, settings=settings: private_tree(rows, settings, tree))
        timings.append(Row(f"tree of depth 5, {scheme}", None, None, seconds))
    return timings


if __name__ == "__main__":
    main()
