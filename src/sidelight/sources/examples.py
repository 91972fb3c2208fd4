"""Small public tables typed in as counts, and made ones: a survey with a known joint, a rare condition."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Codes, Whole
from sidelight.foundation.errors import check_choice, check_whole
from sidelight.schema import Attribute, Schema, categorical
from sidelight.sources.counts import Counts
from sidelight.sources.reader import read
from sidelight.sources.table import Table

_TITANIC_SCHEMA = (
    categorical("class", ["1st", "2nd", "3rd", "crew"], ordinal=True),
    categorical("sex", ["female", "male"]),
    categorical("age", ["child", "adult"], ordinal=True),
    categorical("survived", ["no", "yes"]),
)
# (class, sex, age, survived); British Board of Trade (1990), Report on the Loss of the "Titanic" (S.S.);
# R. J. M. Dawson, The "unusual episode" data revisited, J. Statistics Education 3(3), 1995.
_TITANIC = [
    [[[0, 1], [4, 140]], [[0, 5], [118, 57]]],
    [[[0, 13], [13, 80]], [[0, 11], [154, 14]]],
    [[[17, 14], [89, 76]], [[35, 13], [387, 75]]],
    [[[0, 0], [3, 20]], [[0, 0], [670, 192]]],
]

_ADMISSIONS_SCHEMA = (
    categorical("department", ["A", "B", "C", "D", "E", "F"]),
    categorical("gender", ["female", "male"]),
    categorical("admitted", ["no", "yes"]),
)
# (department, gender, admitted); Berkeley 1973, six largest departments.
# P. J. Bickel, E. A. Hammel, J. W. O'Connell, Sex bias in graduate admissions, Science 187, 1975.
_ADMISSIONS = [
    [[19, 89], [313, 512]],
    [[8, 17], [207, 353]],
    [[391, 202], [205, 120]],
    [[244, 131], [279, 138]],
    [[299, 94], [138, 53]],
    [[317, 24], [351, 22]],
]


def titanic() -> Counts:
    """Return the 2,201 people of the Titanic by class, sex, age and survival.

    >>> titanic().total
    2201
    """
    return Counts(Schema(_TITANIC_SCHEMA), np.array(_TITANIC, dtype=np.int64))


def admissions() -> Counts:
    """Return 4,526 applicants to Berkeley in 1973 by department, gender and admission.

    >>> admissions().total
    4526
    """
    return Counts(Schema(_ADMISSIONS_SCHEMA), np.array(_ADMISSIONS, dtype=np.int64))


def example(name: str) -> Table:
    """Return a bundled example as a table of records: "survey", "titanic", "admissions" or "clinic".

    >>> example("survey")
    Table('the example survey', 20000 rows, 7 attributes)
    """
    counts = {"titanic": titanic, "admissions": admissions}
    drawn = {"survey": survey, "clinic": clinic}
    check_choice("name", name, ("survey", *counts, "clinic"))
    return drawn[name]() if name in drawn else expand(counts[name](), f"the example {name}")


def expand(counts: Counts, label: str) -> Table:
    """Return a table with as many records as the counts say."""
    codes = np.repeat(np.argwhere(counts.cells > 0), counts.cells[counts.cells > 0], axis=0)
    return labelled(counts.schema, codes, label)


def labelled(schema: Schema, codes: Whole | Codes, label: str) -> Table:
    """Return coded records as a table of their labels."""
    columns = {item.name: np.asarray(item.values)[codes[:, i]] for i, item in enumerate(schema)}
    return read(pa.table(columns), schema=schema, label=label)


@cache
def survey_joint() -> tuple[Schema, Array]:
    """Return the schema of the survey and its exact joint distribution, one axis for each attribute.

    A health survey as a Bayesian network: region and age are independent; education depends on age,
    income on education and region, smoking on age and education, the diagnosis on age and smoking, and
    medication almost tells the diagnosis.
    """
    region = np.array([0.5, 0.3, 0.2])
    age = np.array([0.3, 0.4, 0.3])
    education = np.array([[0.2, 0.5, 0.3], [0.25, 0.45, 0.3], [0.5, 0.35, 0.15]])
    income = np.array(
        [
            [[0.5, 0.35, 0.15], [0.3, 0.45, 0.25], [0.1, 0.4, 0.5]],
            [[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]],
            [[0.7, 0.25, 0.05], [0.5, 0.4, 0.1], [0.3, 0.45, 0.25]],
        ]
    )
    smokes = _no_yes([[0.35, 0.2, 0.1], [0.3, 0.22, 0.12], [0.2, 0.12, 0.08]])
    diabetes = _no_yes([[0.01, 0.02], [0.05, 0.09], [0.16, 0.25]])
    medication = _no_yes([0.02, 0.85])
    factors = (region, age, education, income, smokes, diabetes, medication)
    return Schema(_SURVEY), np.einsum("r,a,ae,rei,aes,asd,dm->raeisdm", *factors)


def _no_yes(shares: ArrayLike) -> Array:
    """Return the probabilities of no and yes where those of yes are given."""
    yes = np.asarray(shares)
    return np.stack([1 - yes, yes], axis=-1)


_SURVEY: tuple[Attribute, ...] = (
    categorical("region", ["north", "centre", "south"]),
    categorical("age", ["18-39", "40-59", "60+"], ordinal=True),
    categorical("education", ["basic", "secondary", "higher"], ordinal=True),
    categorical("income", ["low", "middle", "high"], ordinal=True),
    categorical("smokes", ["no", "yes"]),
    categorical("diabetes", ["no", "yes"]),
    categorical("medication", ["no", "yes"]),
)


def survey(rows: int = 20_000, seed: int = 1) -> Table:
    """Return `rows` records drawn from the survey's joint distribution."""
    check_whole("rows", rows, at_least=2)
    check_whole("seed", seed, at_least=0)
    schema, joint = survey_joint()
    cells = np.random.default_rng(seed).choice(joint.size, size=rows, p=joint.ravel())
    return labelled(schema, np.column_stack(np.unravel_index(cells, joint.shape)), "the example survey")


_SYMPTOMS = (
    "cough", "fatigue", "fever", "headache", "insomnia", "nausea", "pain", "rash", "swelling", "thirst",
    "vertigo", "weakness",
)  # fmt: skip
_ILL = 0.11


def clinic(rows: int = 20_000, seed: int = 1) -> Table:
    """Return `rows` drawn patients: a condition that 11 % have, and twelve symptoms that hint at it.

    With the condition a patient has each symptom with a probability from 0.48 to 0.68, without it with one
    from 0.2 to 0.4, independently of the others. No single symptom says much, and guesses from randomised
    answers are hardly ever "yes", so that their accuracy says nothing; the order of suspicion does.
    """
    check_whole("rows", rows, at_least=2)
    check_whole("seed", seed, at_least=0)
    rng = np.random.default_rng(seed)
    is_ill = rng.random((rows, 1)) < _ILL
    rates = np.where(is_ill, np.linspace(0.48, 0.68, len(_SYMPTOMS)), np.linspace(0.2, 0.4, len(_SYMPTOMS)))
    codes = np.concatenate([is_ill, rng.random(rates.shape) < rates], axis=1).astype(np.int64)
    schema = Schema(tuple(categorical(name, ["no", "yes"]) for name in ("condition", *_SYMPTOMS)))
    return labelled(schema, codes, "the example clinic")
