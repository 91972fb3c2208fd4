"""Every study there is, by name."""

from __future__ import annotations

from functools import cache

from sidelight.foundation.errors import unknown
from sidelight.studies import clldp, corr_rr, cpl, ours, pdp, reconstruction
from sidelight.studies.study import Study, Work


@cache
def all_studies() -> tuple[Study, ...]:
    """Return every study, paper by paper, ours last."""
    papers = (cpl, pdp, corr_rr, clldp, reconstruction, ours)
    return tuple(study for paper in papers for study in paper.STUDIES)


def find_study(name: str) -> Study:
    """Return the study called `name`."""
    studies = {study.name: study for study in all_studies()}
    if name not in studies:
        raise unknown("study", name, studies)
    return studies[name]


def sharing(work: Work) -> tuple[Study, ...]:
    """Return all studies that are read from a work."""
    return tuple(study for study in all_studies() if study.work == work)
