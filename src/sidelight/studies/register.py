"""Every study there is, by name, as `studies.toml` lists it; its code is loaded when it is asked for."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

from sidelight.foundation.errors import unknown
from sidelight.studies.study import Listing, Reading, Study, Value, Work

_LISTED = tomllib.loads(Path(__file__).with_name("studies.toml").read_text(encoding="utf-8"))
PAPERS: dict[str, str] = _LISTED.pop("papers")
"""What each short name of a paper stands for."""
CATALOGUE = {name: Listing(name=name, **about) for name, about in _LISTED.items()}
"""Every study by name, paper by paper, ours last."""


def beside(name: str, *values: Value) -> dict[str, Value]:
    """Return our values by the names of what is published about a study, in its order."""
    return dict(zip(CATALOGUE[name].published, values, strict=True))


@cache
def find_study(name: str) -> Study:
    """Return the study called `name`."""
    if name not in CATALOGUE:
        raise unknown("study", name, CATALOGUE)
    listing = CATALOGUE[name]
    reading: Reading = import_module(f"sidelight.studies.{listing.home}").STUDIES[name]
    return Study(**vars(reading), **vars(listing))


def all_studies() -> tuple[Study, ...]:
    """Return every study, paper by paper, ours last."""
    return tuple(map(find_study, CATALOGUE))


def sharing(work: Work) -> tuple[Study, ...]:
    """Return all studies that are read from a work; they lie in the folder of the code that computes it."""
    _, _, folder, *_ = work.compute.__module__.split(".")
    near = (find_study(name) for name, listing in CATALOGUE.items() if listing.home.startswith(f"{folder}."))
    return tuple(study for study in near if study.work == work)
