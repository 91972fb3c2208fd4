"""Paper CLLDP, Figs. 4 and 5: learning from released labels and guessing them, on real records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sidelight.attacks.labels import attack_labels
from sidelight.foundation.intervals import Interval, student_interval
from sidelight.foundation.progress import track
from sidelight.labels.collection import LabelledRows, LabelSettings
from sidelight.learning.bayes import private_bayes
from sidelight.learning.cart import private_tree
from sidelight.learning.synthetic import private_synthetic
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.studies.clldp.joints import (
    Point,
    budgets,
    is_below,
    line_of,
    mean_point,
    points_figure,
    points_of,
    result_of,
)
from sidelight.studies.clldp.records import RealSet, adult, smart_grid
from sidelight.studies.register import beside
from sidelight.studies.study import Drawing, Reading, StudyResult, Verdict, Work, judged

PRINTED_SHARES = {"adult": 0.70, "smart grid with stab": 0.96}
"""Fig. 5 at epsilon 0.5 as the text gives it: the least share of labels guessed under LabelDP."""


def real_points(quick: bool) -> list[Point]:
    """Return the points of Figs. 4 and 5; quickly of two sets at one budget, repeated to know chance."""
    epsilons, repeats = (budgets(quick)[:1], 2) if quick else (budgets(quick), 3)
    sets = (adult, partial(smart_grid, with_stab=False), partial(smart_grid, with_stab=True))
    chosen = sets[::2] if quick else sets
    return [point for make in chosen for point in learning_points(make, epsilons, repeats)]


def learning_points(make: Callable[[int], RealSet], epsilons: Sequence[float], repeats: int) -> list[Point]:
    """Return the points of Figs. 4 and 5 on one set of real records."""
    figures = {"figure 4 bayes": _bayes_lines, "figure 4 tree": _tree_lines, "figure 5": _attack_lines}
    values_of: dict[tuple[str, str, str, float], list[float]] = {}
    for seed in range(repeats):
        data = make(seed)
        for epsilon in track(list(epsilons), f"Figs. 4 and 5, {data.name}"):
            for figure, lines in figures.items():
                for line, value in lines(data, epsilon, seed).items():
                    values_of.setdefault((figure, data.name, line, epsilon), []).append(value)
    return [mean_point(*key, values) for key, values in values_of.items()]


def label_settings(epsilon: float) -> dict[str, LabelSettings]:
    """Return the collections that Figs. 4 and 5 compare."""
    as_published = LabelSettings(epsilon, "khr", "learnt", "published", confidence=None)
    return {
        "kHR, omega known": LabelSettings(epsilon, "khr", "known"),
        "kHR, omega learnt, upper limit": LabelSettings(epsilon, "khr", "learnt"),
        "kHR, omega learnt, point estimate": as_published,
        "basic": LabelSettings(epsilon, "basic"),
        "LabelDP": LabelSettings(epsilon, "labeldp"),
    }


def _bayes_lines(data: RealSet, epsilon: float, seed: int) -> dict[str, float]:
    from sklearn.naive_bayes import CategoricalNB

    lines = {"commonest label": data.control}
    for line, settings in label_settings(epsilon).items():
        fit = private_bayes(data.train, settings, tables="published", seed=seed)
        lines[line] = _accuracy(fit.model, data.test)
        lines[f"leakage, {line}"] = min(fit.statement.leakage, 1e3)  # infinite, it would swallow the mean
    plain = CategoricalNB(min_categories=list(data.train.sizes)).fit(data.train.codes, data.train.labels)
    lines["not private"] = float(plain.score(data.test.codes, data.test.labels))
    return lines


def tree_lines(epsilon: float) -> dict[str, tuple[LabelSettings, TreeSettings]]:
    """Return the trees that Fig. 4 compares."""
    known = LabelSettings(epsilon, "khr", "known")
    published = TreeSettings(epsilon, 5, "published", "published", caution=0)
    basic = TreeSettings(epsilon, 5, "published", "published", "basic", caution=0)
    return {
        "turns": (known, TreeSettings(epsilon)),
        "turns, omega learnt": (LabelSettings(epsilon, omega="learnt"), TreeSettings(epsilon)),
        "leaves, closed form": (known, TreeSettings(epsilon, scheme="leaves")),
        "leaves, eq. (15)": (known, TreeSettings(epsilon, scheme="leaves", budgets="published")),
        "Algorithm 4, closed form": (known, TreeSettings(epsilon, 5, "published", "closed", caution=0)),
        "Algorithm 4, eq. (15)": (known, published),
        "Algorithm 4 as printed": (known, replace(published, averaging="equal")),
        "basic, eq. (15)": (LabelSettings(epsilon, "basic"), basic),
        "LabelDP": (LabelSettings(epsilon, "labeldp"), TreeSettings(epsilon)),
    }


def _tree_lines(data: RealSet, epsilon: float, seed: int) -> dict[str, float]:
    from sklearn.tree import DecisionTreeClassifier

    lines = {"commonest label": data.control}
    for line, (settings, tree) in tree_lines(epsilon).items():
        fit = private_tree(data.train, settings, tree, seed=seed)
        lines[line] = _accuracy(fit.tree, data.test)
    plain = DecisionTreeClassifier(max_depth=5, random_state=0).fit(data.train.codes, data.train.labels)
    lines["not private"] = float(plain.score(data.test.codes, data.test.labels))
    made = private_synthetic(data.train, LabelSettings(epsilon, "khr", "known"), seed=seed)
    drawn = made.model.sample(len(data.train), seed=seed)
    trained = DecisionTreeClassifier(max_depth=5, random_state=0).fit(drawn.codes, drawn.labels)
    lines["synthetic records"] = float(trained.score(data.test.codes, data.test.labels))
    return lines


def _accuracy(model: Any, test: LabelledRows) -> float:
    return float(np.mean(model.probabilities(test.codes).argmax(axis=1) == test.labels))


def _attack_lines(data: RealSet, epsilon: float, seed: int) -> dict[str, float]:
    """Return the share of labels guessed from each person's own release (CLLDP, section 7.4)."""
    compared = {"LabelDP": LabelSettings(epsilon, "labeldp"), "kHR": LabelSettings(epsilon, "khr", "known")}
    fits = {
        name: private_bayes(data.train, settings, tables="published", seed=seed)
        for name, settings in compared.items()
    }
    attacks = {f"published, {name}": attack_labels(fit, "published") for name, fit in fits.items()}
    attacks |= {f"optimal, {name}": attack_labels(fit, "optimal") for name, fit in fits.items()}
    lines = {line: 1 - attack.score.value for line, attack in attacks.items()}
    return lines | {"commonest label": 1 - attacks["optimal, kHR"].control.value}


WORK = Work("labels-real", real_points, minutes=9)


def _all_judged(met: Mapping[str, bool], reason: str) -> Verdict:
    """Return the verdict on several claims: reproduced where all are met, else which are not."""
    missed = "; ".join(name for name, is_met in met.items() if not is_met)
    said = f"not met: {missed}; {reason}" if missed else reason
    return judged(not missed, f"{said}; healthcare is not available")


CLAIMS = (
    ("figure 4 bayes", "LabelDP", "kHR, omega known"),
    ("figure 4 bayes", "kHR, omega known", "basic"),
    ("figure 4 tree", "LabelDP", "Algorithm 4, eq. (15)"),
    ("figure 4 tree", "Algorithm 4, eq. (15)", "basic, eq. (15)"),
)
"""What Fig. 4 claims, in the order in which it is listed: which line is at least as accurate as which."""


def _judge_figure_4(points: Sequence[Point]) -> StudyResult:
    """Judge each claim: the line may not be below the other beyond chance, setting by setting (5 % over all).

    Single runs of Algorithm 4 stray by tenths, so that one setting shows little: nor may the mean be below.
    """
    found = [_behind(points, *claim) for claim in CLAIMS]
    gained = [_gained(points, *claim) for claim in CLAIMS]
    settings = len(line_of(points, "figure 4 bayes", "basic"))
    words = [
        f"in {settings - len(lost)} of {settings} settings, or within chance; on the mean {_signed(gain)}"
        for lost, gain in zip(found, gained, strict=True)
    ]
    ours = beside("clldp-fig4", *words)
    # LabelDP "generally" means in most settings
    limits = (settings // 2, 0, settings // 2, 0)
    met = {
        name: len(lost) <= limit and gain.upper >= 0
        for name, lost, gain, limit in zip(ours, found, gained, limits, strict=True)
    }
    drawings = (
        Drawing(
            f"clldp-fig4-{name}", f"accuracy of {what}", partial(points_figure, f"figure 4 {name}", points)
        )
        for name, what in (("bayes", "Naive Bayes"), ("tree", "trees"))
    )
    reason = f"{_printed_trees(points)}; {_excess_and_gains(points)}"
    return result_of(points, "figure 4", _all_judged(met, reason), ours, *drawings)


def _behind(points: Sequence[Point], figure: str, line: str, other: str) -> list[str]:
    """Return the settings in which a line is below another beyond chance."""
    at = points_of(points, figure)
    pairs = [(at[key], at[key[0], other, key[2]]) for key in at if key[1] == line]
    return [f"{own.data} at {own.x:g}" for own, their in pairs if is_below(own, their, len(pairs))]


def _printed_trees(points: Sequence[Point]) -> str:
    """Say how Algorithm 4 as printed does beside the commonest label."""
    trees, control = (
        line_of(points, "figure 4 tree", line) for line in ("Algorithm 4 as printed", "commonest label")
    )
    low = [key for key in trees if trees[key] <= control[key] + 0.005]
    return (
        f"Algorithm 4 as printed, which gives all rounds the same weight, is at or below the commonest label "
        f"(less than 0.005 above it) in {len(low)} of {len(trees)} settings"
    )


def _excess_and_gains(points: Sequence[Point]) -> str:
    """Say how much too much the published estimate of omega leaks, and what is gained over eq. (15)."""
    learnt = line_of(points, "figure 4 bayes", "leakage, kHR, omega learnt, point estimate")
    over = max(value - x for (_, x), value in learnt.items())
    closed, leaves, turns = (
        _signed(_gained(points, "figure 4 tree", line, other))
        for line, other in (
            ("Algorithm 4, closed form", "Algorithm 4, eq. (15)"),
            ("leaves, closed form", "leaves, eq. (15)"),
            ("turns", "leaves, eq. (15)"),
        )
    )
    return (
        f"omega learnt as published leaks up to {over:.2f} more than its budget, our upper limit keeps it. "
        f"Accuracy gained over eq. (15), in pairs, with 95 % intervals: the closed form {closed} in "
        f"Algorithm 4 and {leaves} by leaves; one report of each person, in turns, {turns}"
    )


def _gained(points: Sequence[Point], figure: str, line: str, other: str) -> Interval:
    """Return by how much one line is above another on the mean of all sets and budgets, in pairs."""
    ours, theirs = (line_of(points, figure, each) for each in (line, other))
    return student_interval(np.array([ours[key] - theirs[key] for key in ours]))


def _signed(gain: Interval) -> str:
    return f"{gain.value:+.4f} ({gain.lower:+.4f} to {gain.upper:+.4f})"


def _judge_figure_5(points: Sequence[Point]) -> StudyResult:
    attack, control, heads, best = (
        line_of(points, "figure 5", line)
        for line in ("published, LabelDP", "commonest label", "published, kHR", "optimal, kHR")
    )
    least = min(x for _, x in attack)
    adult_share, grid_share = (attack[name, least] for name in PRINTED_SHARES)
    hidden = max(value for (_, x), value in heads.items() if x == least)
    shares = [
        f"{attack[name, least]:.3f} at epsilon {least:g} (commonest label {control[name, least]:.3f})"
        for name in PRINTED_SHARES
    ]
    ours = beside("clldp-fig5", *shares, hidden)
    # 0.96 is printed, to two digits, and no more than that is asked
    met = dict(zip(ours, (adult_share >= 0.70, grid_share >= 0.955, hidden <= 0.6), strict=True))
    shown = "; ".join(
        f"{name} {attack[name, least]:.3f} (printed {printed:g} or more, commonest label "
        f"{control[name, least]:.3f})"
        for name, printed in PRINTED_SHARES.items()
    )
    reason = (
        f"the published attack on LabelDP at epsilon {least:g}: {shown}; it gains at least "
        f"{min(attack[key] - control[key] for key in attack):+.3f} over the commonest label, and the optimal "
        f"attack on kHR up to {max(best[key] - control[key] for key in best):+.3f}"
    )
    return result_of(points, "figure 5", _all_judged(met, reason), ours)


STUDIES = {
    "clldp-fig4": Reading(WORK, _judge_figure_4),
    "clldp-fig5": Reading(WORK, _judge_figure_5, partial(points_figure, "figure 5")),
}
