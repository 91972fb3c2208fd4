"""Reconstruction of a secret number from the released row of its record.

Two attackers own clean records of the same kind as those that were released. The *published* one learns the
secret from the clean other attributes and applies that to noisy ones; he is trained once, whatever the
noise. The *noise-aware* one knows the mechanism: he perturbs his own records, takes the level of the noise
as an input, and learns the secret from the whole released row, its own noisy report included; one training
serves all levels. Where his own held-out records show that the release itself, the control, the published
attack or its mean with his own comes closer than what he learnt, he uses that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.attacks.attack import Guess
from sidelight.attacks.learners import MODELS as NETWORKS
from sidelight.attacks.learners import Schedule, Trained, fit_imputation, fit_regression, train
from sidelight.attacks.numbers import Numbers
from sidelight.attacks.owner import Noise, NoisyNumbers, perturb
from sidelight.foundation.arrays import Array, Mask
from sidelight.foundation.errors import InputError, check_choice, check_whole, invalid
from sidelight.foundation.randomness import derive_seed

Ways = dict[str, Callable[[Array, float], Array]]
MODELS = (*NETWORKS, "boosted", "imputation")
ROWS_AN_EPOCH = 8192
_BOOSTED_ROWS = 40_000
_LARGEST_INPUT = 8.0
"""Features are cut at this many deviations: Laplace noise has outliers that would dominate the training."""


@dataclass(frozen=True, eq=False)
class Reconstructor:
    """A trained attacker on numbers.

    Attributes:
        names: the attributes of a released row.
        control: (targets,) the guess without a release: the (geometric) median of the attacker's records.
        infer: from released rows and their level to the secrets.
        history: the mean distance after each epoch, on the attacker's held-out rows where he has some, else
            on those he trains on.
        noise: the family that he was trained for; None where he was trained on clean records.
        levels: the levels that he was trained for, in order.
    """

    attack: str
    names: tuple[str, ...]
    secrets: tuple[str, ...]
    control: Array
    infer: Callable[[Array, float], Array]
    history: tuple[float, ...] = ()
    device: str = "cpu"
    noise: Noise | None = None
    levels: tuple[float, ...] = ()

    @property
    def target(self) -> str:
        """The secrets in one line."""
        return " and ".join(self.secrets)

    def guess(self, reports: NoisyNumbers, secret: str, confidence: float) -> Guess:  # noqa: ARG002
        """Return a reconstruction of every record."""
        if secret != self.target:
            raise invalid("secret", f"{self.target!r}, what the attacker was trained for", secret)
        if not isinstance(reports, NoisyNumbers):
            raise invalid("reports", "numbers under noise, as `protect` returns them", type(reports).__name__)
        if reports.names != self.names:
            raise InputError("the release has other attributes than the attacker was trained with.")
        low, high = (self.levels[0], self.levels[-1]) if self.levels else (0.0, np.inf)
        if self.noise and (reports.noise != self.noise or not low <= reports.level <= high):
            raise InputError(
                f"this attacker was trained for {self.noise.family!r} noise at levels from {low:g} to "
                f"{high:g}, leniency {self.noise.leniency:g}; the release is "
                f"{reports.noise.describe(reports.level)}. Train him for it."
            )
        own = reports.values[:, [self.names.index(name) for name in self.secrets]]
        guesses = self.infer(reports.values, reports.level)
        words = reports.noise.describe(reports.level)
        return Guess(self.attack, words, "mean distance", guesses, self.control, own)

    def truth(self, table: Numbers, secret: str) -> Array:  # noqa: ARG002 - checked by `guess`
        """Return the true secrets, shape (n, targets)."""
        return table.columns(self.secrets)


def fit_published(
    own: Numbers,
    secrets: Sequence[str],
    model: str = "mlp",
    *,
    schedule: Schedule | None = None,
    seed: int = 0,
) -> Reconstructor:
    """Train the published attacker: the secret from the clean other attributes, once for every noise.

    The model is a network ("mlp", "cnn", "rnn", "lstm", "attention"), "boosted" or "imputation"; a network
    has a schedule, by default of at most 60 epochs of small batches.
    """
    check_choice("model", model, MODELS)
    inputs, targets = _columns(own, secrets)
    rows, wanted = own.values[:, inputs], own.values[:, targets]
    if model == "imputation":
        learnt = Trained(fit_imputation(rows, wanted))
    elif model == "boosted":
        learnt = Trained(fit_regression(rows, wanted, seed))
    else:
        learnt = train(model, lambda _: (rows, wanted), None, schedule or _published_schedule(own), seed)

    def infer(released: Array, _level: float) -> Array:
        return learnt.predict(released[:, inputs])

    words = "imputation" if model == "imputation" else f"{model}, trained on clean rows as published"
    trained = (learnt.history, learnt.device)
    return Reconstructor(words, own.names, tuple(secrets), centre(wanted), infer, *trained)


def fit_aware(
    own: Numbers,
    secrets: Sequence[str],
    noise: Noise,
    levels: Sequence[float],
    model: str = "mlp",
    *,
    schedule: Schedule | None = None,
    seed: int = 0,
) -> Reconstructor:
    """Train the noise-aware attacker, for all levels at once.

    He perturbs his clean records himself, by the family in use, which is public. The levels are the budgets
    (or shares of swaps) to be ready for; the model is a network or "boosted".
    """
    check_choice("model", model, (*NETWORKS, "boosted"))
    _, targets = _columns(own, secrets)
    check_whole("number of levels", len(levels), at_least=1)
    grid = tuple(sorted({noise.check_level(level) for level in levels}))
    maker = _Perturbed(own, tuple(secrets), targets, noise, grid, seed)
    features = _Features.of(maker)
    kept, held_out = maker.split()
    learnt = _learn(model, kept, held_out, features, schedule or Schedule(epochs=40))
    steps = _published_schedule(kept.own, schedule)
    clean = fit_published(kept.own, secrets, model, schedule=steps, seed=seed)
    control = centre(own.values[:, targets])
    ways: Ways = {
        "learnt": lambda rows, level: learnt.predict(features(rows, np.full(len(rows), level))),
        "release": lambda rows, _: rows[:, targets],
        "control": lambda rows, _: np.tile(control, (len(rows), 1)),
        "published": clean.infer,
        "both": lambda rows, level: (ways["learnt"](rows, level) + clean.infer(rows, level)) / 2,
    }
    words, infer = f"{model}, noise-aware", _best_ways(ways, held_out)
    return Reconstructor(
        words, own.names, clean.secrets, control, infer, learnt.history, learnt.device, noise, grid
    )


def _learn(
    model: str, kept: _Perturbed, held_out: _Perturbed, features: _Features, schedule: Schedule
) -> Trained:
    """Learn the secrets from the attacker's own rows under noise: fresh noise every epoch for a network."""
    if model == "boosted":
        rows, levels, wanted = kept.draw(0, _BOOSTED_ROWS)
        return Trained(fit_regression(features(rows, levels), wanted, kept.seed))
    rows, levels, wanted = held_out.draw(0, ROWS_AN_EPOCH)

    def epoch(number: int) -> tuple[Array, Array]:
        noisy, drawn, true = kept.draw(number + 1, max(len(kept.own), ROWS_AN_EPOCH))
        return features(noisy, drawn), true

    return train(model, epoch, (features(rows, levels), wanted), schedule, kept.seed)


def _best_ways(ways: Ways, held_out: _Perturbed) -> Callable[[Array, float], Array]:
    """Return what uses, at each level, the way that is best at the nearest level he trained for.

    The best is what comes closest on his own held-out records: what he learnt, or less. Under little noise
    the release itself can be better than anything learnt, under much noise the control.
    """
    best, copies = {}, max(1, ROWS_AN_EPOCH // len(held_out.own))
    true = np.tile(held_out.own.values[:, held_out.targets], (copies, 1))
    for level in held_out.levels:
        noisy = np.concatenate([held_out.at(level, copy) for copy in range(copies)])
        errors = {way: np.clip(infer(noisy, level), 0, 1) - true for way, infer in ways.items()}
        distances = {way: float(np.linalg.norm(error, axis=1).mean()) for way, error in errors.items()}
        best[level] = min(distances, key=distances.__getitem__)

    def infer(released: Array, level: float) -> Array:
        # Levels act by their ratio, so the distance is that of logarithms.
        nearest = min(best, key=lambda known: abs(np.log(known / level)))
        return np.clip(ways[best[nearest]](released, level), 0.0, 1.0)

    return infer


@dataclass(frozen=True, eq=False)
class _Perturbed:
    """The attacker's own records under fresh noise."""

    own: Numbers
    secrets: tuple[str, ...]
    targets: list[int]
    noise: Noise
    levels: tuple[float, ...]
    seed: int

    def draw(self, number: int, count: int) -> tuple[Array, Array, Array]:
        """Return at least `count` noisy rows, the level of each and the true secrets."""
        copies = max(1, round(count / len(self.own)))
        rng = np.random.default_rng([self.seed, number, len(self.own)])
        rows, levels, wanted = [], [], []
        for copy in range(copies):
            chosen = rng.integers(0, len(self.levels), len(self.own))
            for position, level in enumerate(self.levels):
                picked = chosen == position
                seed = derive_seed(self.seed, f"{number} {copy} {position} {len(self.own)}")
                rows.append(self._noisy(picked, level, seed))
                levels.append(np.full(int(picked.sum()), level))
                wanted.append(self.own.values[picked][:, self.targets])
        return np.concatenate(rows), np.concatenate(levels), np.concatenate(wanted)

    def _noisy(self, picked: Mask, level: float, seed: int | None) -> Array:
        """Return the picked rows under noise; swaps need the whole table, other noise only the rows."""
        if self.noise.family == "swap":
            return perturb(self.own, self.noise, level, self.secrets, seed)[picked]
        return perturb(self.own.rows(picked), self.noise, level, self.secrets, seed)

    def at(self, level: float, copy: int = 0) -> Array:
        """Return all rows under noise of one level."""
        seed = derive_seed(self.seed, f"at {level!r} {copy} {len(self.own)}")
        return perturb(self.own, self.noise, level, self.secrets, seed)

    def split(self) -> tuple[_Perturbed, _Perturbed]:
        """Return nine tenths to learn from and one tenth to judge by."""
        rng = np.random.default_rng([self.seed, 1])
        # By blocks: kin of a training row would flatter the judge.
        judging, learning = self.own.divided(max(1, len(self.own) // 10), rng)
        return replace(self, own=learning), replace(self, own=judging)


@dataclass(frozen=True, eq=False)
class _Features:
    """Released rows on the scale of their level, so that strong and weak noise look alike, and the level."""

    logs: Array
    means: Array
    deviations: Array

    @classmethod
    def of(cls, maker: _Perturbed) -> _Features:
        noisy = [maker.at(level) for level in maker.levels]
        means = np.stack([rows.mean(axis=0) for rows in noisy])
        deviations = np.stack([rows.std(axis=0) for rows in noisy])
        return cls(np.log(np.asarray(maker.levels)), means, np.maximum(deviations, 1e-9))

    def __call__(self, rows: Array, levels: Array) -> Array:
        logs = np.log(levels)
        mean = _between(logs, self.logs, self.means)
        deviation = _between(logs, self.logs, self.deviations)
        scaled = np.clip((rows - mean) / deviation, -_LARGEST_INPUT, _LARGEST_INPUT)
        return np.column_stack([scaled, logs])


def _between(at: Array, known: Array, table: Array) -> Array:
    """Interpolate each column of a table over levels."""
    return np.stack([np.interp(at, known, column) for column in table.T], axis=1)


def centre(points: Array) -> Array:
    """Return the point with the least mean distance to all: the median, the geometric one in the plane.

    Weiszfeld's iteration (1937), started at the mean.

    >>> centre(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.1]])).round(3)
    array([0. , 0.1])
    """
    if points.shape[1] == 1:
        return np.asarray(np.median(points, axis=0))
    middle = points.mean(axis=0)
    for _ in range(200):
        # A point at the middle itself would get an infinite weight.
        weights = 1 / np.maximum(np.linalg.norm(points - middle, axis=1), 1e-9)
        middle = weights @ points / weights.sum()
    return np.asarray(middle)


def _published_schedule(own: Numbers, given: Schedule | None = None) -> Schedule:
    """Return small steps for about 2,000 batches, at most 60 epochs, on the device of the given schedule."""
    epochs = max(5, min(60, 2000 * 64 // len(own)))
    return Schedule(epochs, batch=64, rate=1e-3, width=32, device=given.device if given else None)


def _columns(own: Numbers, secrets: Sequence[str]) -> tuple[list[int], list[int]]:
    if not secrets:
        raise InputError("name at least one secret to reconstruct.")
    targets = [own.index(name) for name in secrets]
    inputs = [i for i in range(len(own.names)) if i not in targets]
    if not inputs:
        raise InputError("every attribute is a secret; at least one other is needed to learn from.")
    return inputs, targets
