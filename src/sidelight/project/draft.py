"""Draft a project file by looking at a table: what can be guessed is guessed, and every guess says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.toml import toml_comment, toml_key, toml_value
from sidelight.project.file import PROJECT_VERSION
from sidelight.project.sensitive import rare_value, tells_a_split, topic_of
from sidelight.report.wording import share
from sidelight.sources import Table

_HEAD = """\
# What is collected, what must stay secret, and why. `sidelight run` reports on it; all commands read it.
# Lines marked "guessed" were guessed by looking at the table: check them, and write your reasons.
version = {version}
purpose = {purpose}   # why the data are collected; the report says it
output = {output}   # the folder of the report
seed = 1   # of simulated steps, so that they can be repeated; real collections never use it
"""
_PROTECT = """\
[protect]
limit = 1   # guessed: nobody can say it for you. In nats: reports may move the odds about a secret 2.72 times
reason = ""   # why this limit
decide_by = "report"   # guessed: limits hold for whoever knows the table, whatever is reported
# delta = 0.01   # limits that 1 person in 100 may be exposed beyond; then decide_by = "table" or "population"
"""
_RELEASE = """\
[release]
mechanism = "auto"   # guessed: for each attribute the mechanism with the least error
budgets = "calibrate"   # the largest that keep the limits; or a number, or a table of numbers by attribute
epsilon = 1   # the budget that is audited first, before the calibration
# mechanisms = {{ {example} = "withheld" }}   # of single attributes: a name, or "identity" or "withheld"

[wanted]
people = {people}   # guessed: as many as the table has
precision = 0.03   # guessed: how far a frequency may be off, here 3 percentage points
"""


@dataclass(frozen=True)
class Draft:
    """A drafted project: its text, and the secrets and columns left out that were guessed, with reasons."""

    text: str
    secrets: Mapping[str, str]
    dropped: Mapping[str, str]


def draft_project(table: Table, path: str, schema: str, stated: Mapping[str, object], output: str) -> Draft:
    """Return the draft of a table that is read from `path`, as its project's file writes it.

    The data dictionary is called `schema`; `stated` are the options of reading that were given.
    """
    dropped = {
        item.name: "it tells which part of a data set a record belongs to, nothing about people"
        for item in table.schema
        if tells_a_split(item.values)
    }
    if len(dropped) == len(table.schema):  # something must be left to collect
        dropped = {}
    secrets = _secrets(table, dropped)
    kept = [item.name for item in table.schema if item.name not in dropped]
    parts = [
        _HEAD.format(version=PROJECT_VERSION, purpose='""', output=toml_value(output)),
        _data(table, path, schema, stated, dropped),
        _secret_sections(secrets, kept),
        _PROTECT,
        _RELEASE.format(people=table.rows, example=toml_key(kept[0])),
    ]
    return Draft("\n".join(parts), secrets, dropped)


def _secrets(table: Table, dropped: Iterable[str]) -> dict[str, str]:
    """Return the attributes that look sensitive, with the reason."""
    names = [name for name in table.schema.names if name not in dropped]
    reasons = {name: f"its name is about {topic}" for name in names if (topic := topic_of(name))}
    binary = [name for name in names if name not in reasons and table.schema[name].size <= 3]
    counted = zip(binary, table.counts(*([name] for name in binary)), strict=True)
    for name, counts in counted:
        shares = np.asarray(counts.cells, dtype=np.float64) / max(table.rows, 1)
        if rare := rare_value(table.schema[name], shares.tolist()):
            reasons[name] = f"{share(rare[1])} have {rare[0]!r}: what few have is often what they hide"
    return {name: reasons[name] for name in names if name in reasons}


def _data(
    table: Table, path: str, schema: str, stated: Mapping[str, object], dropped: Mapping[str, str]
) -> str:
    """Return the section about the table; what was set aside is a comment."""
    lines = ["[data]", f"path = {toml_value(path)}"]
    lines += [f"schema = {toml_value(schema)}   # what each column is: read it, since figures rest on it"]
    lines += [f"{key} = {toml_value(value)}" for key, value in stated.items()]
    if dropped:
        listed = [*_as_list(stated.get("drop")), *dropped]
        reason = next(iter(dropped.values()))
        lines = [line for line in lines if not line.startswith("drop = ")]
        lines.append(f"drop = {toml_value(listed)}   # guessed: {reason}")
    lines += [toml_comment(f"set aside: {item.column}, which {item.reason}") for item in table.set_aside]
    lines += [toml_comment(f"guessed: {item.column} {item.reason}") for item in table.guesses]
    return "\n".join(lines) + "\n"


def _as_list(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _secret_sections(secrets: Mapping[str, str], kept: Iterable[str]) -> str:
    """Return a section for each secret; where nothing looks sensitive, say that everything is protected."""
    if not secrets:
        example = toml_key(next(iter(kept)))
        said = "guessed: no name looks sensitive, so every attribute is a secret. Name those that are, as in"
        return f"{toml_comment(said)}\n{toml_comment(f'[secret.{example}]')}\n"
    sections = [
        f'[secret.{toml_key(name)}]\nreason = ""   {toml_comment(f"guessed: {reason}")}\n'
        for name, reason in secrets.items()
    ]
    return "\n".join(sections)
