"""What calibration buys: CPL, Fig. 8, with the constraints that hold beside the one that does not.

`python -m sidelight.studies.calibration [--quick] FOLDER` writes the tables and draws the figures.
The public tables are found in the folder that SIDELIGHT_DATA names. The LFW file is a small biased sample
(2,999 images of 62 people, mostly men): what is learnt from it stands for public knowledge that is off.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidelight.belief import Belief
from sidelight.calibration import calibrate, optimal_channel
from sidelight.calibration.constraint import constraint_of
from sidelight.calibration.problem import build
from sidelight.calibration.uniform import uniform_budget
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.leakage.total import lower_total
from sidelight.plan import Plan
from sidelight.sources import read
from sidelight.studies.study import table_file

TEN = (
    "Male", "Young", "Smiling", "Eyeglasses", "No_Beard", "Heavy_Makeup", "Wearing_Lipstick", "Attractive",
    "Bald", "Gray_Hair",
)  # fmt: skip
"""Ten attributes of CelebA, of every strength of correlation."""
PAPER_RATIO = 5.0
"""CPL, section V-C: the calibrated budget over the even split, about."""
STEP = 0.01
"""The step of CPL, Algorithm 3."""
_SUBSET = 21
_LIMITS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
_FEWER = (4, 8, 12, 16, 21, 30, 38)
_CHANNEL_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class LimitRow:
    """The budget of every attribute at one limit, by what sets it; the 38 shared attributes of CelebA.

    Attributes:
        limit: of every attribute.
        even: the even split.
        published: the largest budget under the published sum.
        stepped: what CPL, Algorithm 3 returns, a step or two past that.
        public: the published budget learnt from LFW.
        tree: the largest budget for an adversary who models CelebA as a tree.
        certified: the largest budget that is certified for CelebA's own distribution.
        reached: the most that surely leaks about one attribute at the published budget; over the limit, the
            published constraint is shown not to keep it.
    """

    limit: float
    even: float
    published: float
    stepped: float
    public: float
    tree: float
    certified: float
    reached: float


@dataclass(frozen=True)
class FewerRow:
    """One budget for all over the even split, at limit 1, when so many attributes are released."""

    attributes: int
    published: float
    tree: float
    certified: float


@dataclass(frozen=True)
class UnequalRow:
    """The weighted error of the same limits, kept in three ways."""

    data: str
    constraint: str
    attributes: int
    even: float
    uniform: float
    unequal: float


@dataclass(frozen=True)
class ChannelRow:
    """Accuracy at one limit on what cholesterol's report says about cardio.

    Attributes:
        limit: on the leakage about cardio.
        budget: of randomised response at that limit.
        response: its accuracy, the report taken as it is.
        guess: its accuracy, each report turned into the best guess.
        optimal: the accuracy of the optimal channel.
        balanced_response: the mean over cholesterol's values of the probability that randomised response
            reports it right.
        balanced_optimal: the same of the channel that is optimal for it.
    """

    limit: float
    budget: float
    response: float
    guess: float
    optimal: float
    balanced_response: float
    balanced_optimal: float


@dataclass(frozen=True)
class CalibrationStudy:
    """All tables of the study.

    Attributes:
        limits: budgets against limits on the 38 shared attributes.
        subsets: published over even split at limit 1, for random sets of 21 of them.
        fewer: what releasing fewer attributes does.
        unequal: unequal against uniform budgets.
        channels: the optimal channel against randomised response.
    """

    limits: tuple[LimitRow, ...]
    subsets: tuple[float, ...]
    fewer: tuple[FewerRow, ...]
    unequal: tuple[UnequalRow, ...]
    channels: tuple[ChannelRow, ...]

    @property
    def ratio(self) -> float:
        """The published budget over the even split at limit 1."""
        row = next(row for row in self.limits if row.limit == 1)
        return row.published / row.even

    @property
    def verdict(self) -> str:
        """Whether Fig. 8 was reproduced, in one line."""
        row = next(row for row in self.limits if row.limit == 1)
        low, high = min(self.subsets), max(self.subsets)
        return (
            f"reproduced, and refuted as a promise: published calibration gives {self.ratio:.2f} times the "
            f"even split on 38 attributes and {low:.1f} to {high:.1f} on random sets of {_SUBSET} (the "
            f"paper, which names none, says about {PAPER_RATIO:g}), but it rests on a sum that is no bound: "
            f"{row.reached:.3f} of a limit of 1 surely leak there, and {row.certified / row.even:.2f} times "
            "the even split is what can be certified."
        )


def run(quick: bool = False) -> CalibrationStudy:
    """Compute every table; `quick` with fewer points."""
    shared, public = _shared()
    limits = (1.0,) if quick else _LIMITS
    return CalibrationStudy(
        tuple(_limit_row(shared, public, limit) for limit in track(limits, "limits")),
        _subsets(shared, 4 if quick else 40),
        tuple(
            _fewer_row(shared, count) for count in track(_FEWER[:3] if quick else _FEWER, "fewer attributes")
        ),
        tuple(_unequal_rows(quick)),
        _channel_rows(_CHANNEL_LIMITS[2::4] if quick else _CHANNEL_LIMITS),
    )


def table_path(name: str) -> Path:
    """Return the path of a public table, or say where it is looked for."""
    path = table_file(name)
    if not path.exists():
        raise InputError(
            f"there is no {path.name} in {path.parent}; set SIDELIGHT_DATA to the folder of the tables."
        )
    return path


def _shared() -> tuple[Belief, Belief]:
    """Return beliefs about the 38 attributes that CelebA and LFW share; LFW's scores are cut at 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = pq.read_table(table_path("lfw_attr_sample"))
    celeba = pq.read_table(table_path("celeba_attr"))
    names = [name for name in celeba.column_names if name in scores.column_names]
    table = read(celeba.select(names))
    cut = {name: np.where(scores[name].to_numpy() > 0, 1, -1).astype(np.int8) for name in names}
    public = read(pa.table(cut), schema=table.schema)
    return Belief.from_data(table), Belief.from_data(public)


def _largest(belief: Belief, names: Sequence[str], limit: float, constraint: str) -> float:
    """Return the largest budget for all named attributes under a constraint, every one a secret."""
    withheld = {name: "withheld" for name in belief.schema.names if name not in names}
    problem = build(
        belief, limit, limits={}, secrets=names, mechanism="grr", mechanisms=withheld, fixed={}, weights={},
        plan=None, utility="variance", reports=None,
    )  # fmt: skip
    return uniform_budget(problem, constraint_of(problem, constraint))  # type: ignore[arg-type]


def _limit_row(belief: Belief, public: Belief, limit: float) -> LimitRow:
    names = belief.schema.names
    published = _largest(belief, names, limit, "published")
    channels = Plan.uniform(belief.schema, "grr", published).channels()
    even = limit / len(names)
    steps = int(np.floor((published - even) / STEP)) + 2  # the first step that is over, and one more
    return LimitRow(
        limit,
        even,
        published,
        even + steps * STEP,
        _largest(public, names, limit, "published"),
        _largest(belief, names, limit, "tree"),
        _largest(belief, names, limit, "table"),
        max(lower_total(belief, channels, name).value for name in names),
    )


def _subsets(belief: Belief, count: int) -> tuple[float, ...]:
    rng = np.random.default_rng(8)
    found = []
    for _ in track(range(count), "sets of 21"):
        names = [str(name) for name in rng.choice(belief.schema.names, _SUBSET, replace=False)]
        found.append(_largest(belief, names, 1.0, "published") * _SUBSET)
    return tuple(found)


def _fewer_row(belief: Belief, count: int) -> FewerRow:
    """Release the first so many attributes of a fixed random order, all of them secrets."""
    order = np.random.default_rng(38).permutation(belief.schema.names)
    names = [str(name) for name in order[:count]]
    found = [
        _largest(belief, names, 1.0, constraint) * count for constraint in ("published", "tree", "table")
    ]
    return FewerRow(count, *found)


def _unequal_rows(quick: bool) -> list[UnequalRow]:
    celeba = read(str(table_path("celeba_attr")))
    ten = Belief.from_data(
        read(str(table_path("celeba_attr")), drop=[name for name in celeba.schema.names if name not in TEN])
    )
    rows = [_unequal_row("CelebA, ten attributes", ten, "table")]
    if not quick:
        adult = Belief.from_data(read(str(table_path("adult")), drop=["split"]))
        rows += [_unequal_row("CelebA, ten attributes", ten, "tree"), _unequal_row("adult", adult, "table")]
    return rows


def _unequal_row(label: str, belief: Belief, constraint: str) -> UnequalRow:
    found = calibrate(belief, 1.0, constraint=constraint)  # type: ignore[arg-type]
    even = float("nan") if found.even is None else found.even.weighted_error
    return UnequalRow(
        label,
        constraint,
        len(found.budgets),
        even,
        found.uniform.weighted_error,
        found.chosen.weighted_error,
    )


def _channel_rows(limits: Sequence[float]) -> tuple[ChannelRow, ...]:
    cells = read(str(table_path("cardio"))).counts(["cholesterol", "cardio"])[0]
    belief = Belief.from_counts(cells, source="cardio")
    return tuple(_channel_row(belief, limit) for limit in limits)


def _channel_row(belief: Belief, limit: float) -> ChannelRow:
    prior = belief.prior("cholesterol")
    found = optimal_channel(belief, "cholesterol", {"cardio": limit})
    fair = np.diag(1 / (len(prior) * prior))
    balanced = optimal_channel(belief, "cholesterol", {"cardio": limit}, utility=fair)
    return ChannelRow(
        limit,
        found.response_epsilon,
        found.response_utility,
        found.response_best,
        found.utility,
        balanced.response_utility,
        balanced.utility,
    )


def main(arguments: Sequence[str]) -> int:
    """Write the tables and the figures to the folder named on the command line."""
    from sidelight.studies.calibration_drawing import draw, write_tables

    names = [argument for argument in arguments if argument != "--quick"]
    if len(names) != 1:
        raise InputError("name one folder to write to, for example studies-out; --quick takes fewer points.")
    folder = Path(names[0])
    folder.mkdir(parents=True, exist_ok=True)
    study = run(quick="--quick" in arguments)
    write_tables(study, folder / "calibration.md")
    draw(study, folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
