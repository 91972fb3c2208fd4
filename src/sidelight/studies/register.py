"""Every study there is, by name. Its title is known at once; its code is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple

from sidelight.foundation.errors import unknown
from sidelight.studies.study import Reading, Study, Work


class Listing(NamedTuple):
    """A study as it is listed: its name, its paper, the module whose `STUDIES` has it, its title."""

    name: str
    paper: str
    home: str
    title: str


_LISTED = """
CPL in cpl.pairs
  cpl-table1: Table I: estimates against exact figures
  cpl-table2: Table II: estimates against the worst mechanism
CPL in cpl.formulas
  cpl-table3: Table III: eq. (28), all of the budget under weak correlation
  cpl-eq6: Eq. (6): total leakage as a sum of pairs
CPL in cpl.figure_4
  cpl-fig4a: Fig. 4(a): what five mechanisms say about sex
  cpl-fig4b: Fig. 4(b): three attributes about Male, against the budget
CPL in cpl.pairs
  cpl-fig4c: Fig. 4(c): leakage is not symmetric
  cpl-fig4d: Fig. 4(d): most pairs leak little
  cpl-fig5: Fig. 5: leakage against measures of correlation
CPL in cpl.figures_6_7
  cpl-fig6b: Fig. 6(b): analysers on CelebA
  cpl-fig6c: Fig. 6(c): analysers on a table that is not binary
  cpl-fig6d: Fig. 6(d): ITS and CBP against GRR
  cpl-fig6e: Fig. 6(e): ITS against OUE
  cpl-fig7a: Fig. 7(a): frequency error against leakage
  cpl-fig7b: Fig. 7(b): 0-1 error against leakage
CPL in cpl.calibration
  cpl-fig8: Fig. 8: calibrated budgets
ours in cpl.calibration
  calibration-fewer: Calibration: what releasing fewer attributes does
  calibration-unequal: Calibration: unequal against equal budgets
  calibration-channel: Calibration: the optimal channel
PDP in pdp.examples
  pdp-examples: Examples 2 to 5: leakage of two tuples
  pdp-fig2: Fig. 2: what two adversaries infer from a noisy sum
  pdp-theorem2: Theorem 2: the leakage of two correlated tuples
PDP in pdp.figures
  pdp-fig4a: Fig. 4(a): published graph, positive edges
  pdp-fig4b: Fig. 4(b): published graph, negative edges
  pdp-fig4c: Fig. 4(c): Gaussian tuples, positive correlation
  pdp-fig4d: Fig. 4(d): Gaussian tuples, negative correlation
  pdp-fig5a: Fig. 5(a): full against fast search, mean edge 0.2
  pdp-fig5b: Fig. 5(b): full against fast search, mean edge 0.5
  pdp-fig5c: Fig. 5(c): full against fast search, mean edge 0.8
  pdp-fig5d: Fig. 5(d): time of full and fast search
PDP in pdp.joints
  pdp-joints: Exact, certified and published curves on joints that exist
ours in pdp.joints
  pdp-cost: Prior knowledge: seconds of exact figures
Corr-RR in corr_rr.formulas
  corr-rr-table1: Table 1: the real tables
  corr-rr-fig2: Fig. 2: the probability to copy
  corr-rr-fig3: Fig. 3: correlations of the real tables
Corr-RR in corr_rr.figures
  corr-rr-fig4: Fig. 4: two binary attributes, error against the budget
  corr-rr-fig5: Fig. 5: two attributes of ten values, error against the budget
  corr-rr-fig6: Fig. 6: four binary attributes, error against the budget
  corr-rr-fig7: Fig. 7: four attributes of ten values, error against the budget
  corr-rr-fig8: Fig. 8: binary attributes, rho = 0.1, error against their number
  corr-rr-fig9: Fig. 9: binary attributes, rho = 0.9, error against their number
  corr-rr-fig10: Fig. 10: attributes of ten values, rho = 0.5, error against their number
  corr-rr-fig11: Fig. 11: two attributes, error against the share of the first phase
  corr-rr-fig12: Fig. 12: four attributes, error against the share of the first phase
  corr-rr-fig13: Fig. 13: six attributes, error against the correlation
  corr-rr-fig14: Fig. 14: real tables, error against the budget
Corr-RR in corr_rr.formulas
  corr-rr-amplification: The amplified budget of hidden sampling (RS+FD)
ours in corr_rr.figures
  collection-losses: Cells of Figs. 4 to 14 that our estimator loses
CLLDP in clldp.joints
  clldp-table1: Table 1: what fever tells
  clldp-table4: Table 4: adversarial belief
  clldp-fig3: Fig. 3: joint estimation against the budget
CLLDP in clldp.classifiers
  clldp-fig4: Fig. 4: Naive Bayes and decision trees
  clldp-fig5: Fig. 5: labels guessed from the release
CLLDP in clldp.joints
  clldp-fig6: Fig. 6: joint estimation against k
Reconstruction in reconstruction.attacks
  reconstruction-fig2: Fig. 2: five networks under Laplace noise
  reconstruction-fig3: Fig. 3: Laplace and Gaussian noise against the budget
  reconstruction-fig4: Fig. 4: intervals
  reconstruction-fig5: Fig. 5: swaps within an entity
Reconstruction in reconstruction.theorems
  reconstruction-theorem1: Theorem 1: the effective budget
  reconstruction-theorem2: Theorem 2: the effective budget
ours in ours.variance
  mechanism-variance: Variance of every mechanism against budget and number of values
ours in ours.cost
  leakage-cost: What leakage figures cost
ours in ours.limits
  attack-limit: Learnt attacks against the Bayes limit
ours in ours.floating_point
  floating-point: The floating-point attack on a naive sampler and on our release
"""


def _listings() -> Iterator[Listing]:
    for line in _LISTED.strip().splitlines():
        if not line.startswith(" "):
            paper, home = line.split(" in ")
        else:
            name, title = line.strip().split(": ", 1)
            yield Listing(name, paper, home, title)


CATALOGUE = {listing.name: listing for listing in _listings()}
"""Every study by name, paper by paper, ours last."""


@cache
def find_study(name: str) -> Study:
    """Return the study called `name`."""
    if name not in CATALOGUE:
        raise unknown("study", name, CATALOGUE)
    _, paper, home, title = CATALOGUE[name]
    reading: Reading = import_module(f"sidelight.studies.{home}").STUDIES[name]
    return Study(**vars(reading), name=name, paper=paper, title=title)


def all_studies() -> tuple[Study, ...]:
    """Return every study, paper by paper, ours last."""
    return tuple(map(find_study, CATALOGUE))


def sharing(work: Work) -> tuple[Study, ...]:
    """Return all studies that are read from a work; they lie in the folder of the code that computes it."""
    _, _, folder, *_ = work.compute.__module__.split(".")
    near = (find_study(name) for name, listing in CATALOGUE.items() if listing.home.startswith(f"{folder}."))
    return tuple(study for study in near if study.work == work)
