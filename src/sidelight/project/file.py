"""Project: the file `sidelight.toml`, which says what is collected, what must stay secret, and why.

It is TOML, versioned and read strictly. Reading it loads nothing that computes, so that a command that finds
its result in the cache is done at once; what needs the table or the mechanisms is checked where they are.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sidelight.foundation.errors import InputError, check_number, check_whole, invalid, naming, unknown
from sidelight.foundation.files import PROJECT_FILE, read_text
from sidelight.foundation.strict import Strict, parsed_text, versioned

PROJECT_VERSION = 1
CALIBRATE = "calibrate"
_LARGEST = 700.0
"""No budget may be larger: e to this power still fits a double."""
_OUTPUT = "sidelight-report"
Limit = float | Literal["infinity"]


class Reading(Strict):
    """Where the table is and how it is read; the options of `sl.read`."""

    path: str
    schema_file: str | None = Field(default=None, alias="schema")
    sql: str | None = None
    encoding: str = "utf-8"
    na: list[str] | None = None
    drop: list[str] = Field(default_factory=list)
    columns: list[str] | None = None
    bins: int | None = None
    max_values: int | None = None
    missing: Literal["value", "drop"] | None = None


class Secret(Strict):
    """What must not be learnt: how much it may leak, in nats, and why it is secret."""

    limit: Limit | None = None
    reason: str = ""


class Protection(Strict):
    """The limit of secrets that state none, and who must not learn more."""

    limit: Limit | None = None
    adversary: Literal["report", "guess"] = "report"  # what is kept of each report
    delta: float | None = None
    decide_by: str | None = None
    draws: int | None = None  # for figures at delta; by default as many as an audit takes by itself
    reason: str = ""


class Released(Strict):
    """How each attribute is released; budgets are stated, or found by calibration.

    A plan file says all of it by itself, and how values are coded: coarser than the table has them, perhaps.
    """

    plan: str | None = None
    mechanism: str = "grr"
    mechanisms: dict[str, str] = Field(default_factory=dict)
    budgets: str | float | dict[str, float] = CALIBRATE  # the only text is "calibrate"
    epsilon: float = 1.0


class Wanted(Strict):
    """How many people are expected to report, and how precise their frequencies should be."""

    people: int | None = None
    precision: float | None = None


class _ProjectFile(Strict):
    version: int
    purpose: str = ""
    output: str = _OUTPUT
    seed: int | None = None
    data: Reading
    secret: dict[str, Secret] = Field(default_factory=dict)
    protect: Protection = Field(default_factory=Protection)
    release: Released = Field(default_factory=Released)
    wanted: Wanted = Field(default_factory=Wanted)


@dataclass(frozen=True)
class Project:
    """What a project file says.

    Attributes:
        file: the file; paths in it are relative to its folder.
        data: where the table is and how it is read.
        secrets: what must stay secret, by attribute; every attribute where there are none.
        protect: the usual limit, delta, and the adversary who decides.
        release: mechanisms and budgets.
        wanted: the people expected, and the precision wanted.
        purpose: why the data are collected, in words.
        output: the folder of the report, as the file writes it.
        seed: of simulated steps; without one they use the operating system's coins.
    """

    file: Path
    data: Reading
    secrets: Mapping[str, Secret]
    protect: Protection
    release: Released
    wanted: Wanted
    purpose: str = ""
    output: str = _OUTPUT
    seed: int | None = None

    @classmethod
    def read(cls, path: str | Path) -> Project:
        """Read a project file, strictly."""
        label = str(path)
        return cls.from_toml(read_text(path, f"{label} is not UTF-8 text; a project is a TOML file."), path)

    @classmethod
    def from_toml(cls, text: str, path: str | Path = PROJECT_FILE) -> Project:
        """Read a project from TOML text, as if it were the content of the file `path`."""
        label = str(path)
        data = parsed_text(text, label, tomllib.loads, "is not valid TOML: {}")
        rule = f"it must start with `version = {PROJECT_VERSION}`; `sidelight init` drafts one."
        parsed = versioned(_ProjectFile, data, label, PROJECT_VERSION, "project", rule)
        with naming(label):
            _check(parsed)
        return cls(
            Path(path), parsed.data, parsed.secret, parsed.protect, parsed.release, parsed.wanted,
            parsed.purpose, parsed.output, parsed.seed,
        )  # fmt: skip

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to."""
        return self.file.parent

    def path_of(self, name: str) -> Path:
        """Return a path of the file as seen from the working folder."""
        return self.folder / name

    @property
    def source(self) -> str:
        """Where the table is: a file, a folder or a pattern, as seen from the working folder."""
        return str(self.path_of(self.data.path))

    @property
    def schema_file(self) -> Path | None:
        """The data dictionary, if one is named."""
        return None if self.data.schema_file is None else self.path_of(self.data.schema_file)

    @property
    def plan_file(self) -> Path | None:
        """The plan whose releases are stated, if a file is named."""
        return None if self.release.plan is None else self.path_of(self.release.plan)

    @property
    def output_folder(self) -> Path:
        """The folder of the report."""
        return self.path_of(self.output)

    @property
    def limits(self) -> dict[str, float]:
        """The limit of every secret that has one, its own or the usual one."""
        usual = self.protect.limit
        stated = {name: usual if item.limit is None else item.limit for name, item in self.secrets.items()}
        return {name: float(limit) for name, limit in stated.items() if limit is not None}

    @property
    def limit(self) -> float | None:
        """The usual limit."""
        return None if self.protect.limit is None else float(self.protect.limit)

    @property
    def judges(self) -> bool:
        """Whether any secret has a limit; without one a run describes, and judges nothing."""
        return any(
            limit < math.inf for limit in (*self.limits.values(), *([] if self.secrets else self._usual))
        )

    @property
    def _usual(self) -> list[float]:
        return [] if self.limit is None else [self.limit]

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of `sl.read`, less the source."""
        data = self.data
        stated = {
            "schema": self.schema_file, "sql": data.sql, "na": data.na, "columns": data.columns,
            "drop": data.drop or None, "bins": data.bins, "max_values": data.max_values,
            "missing": data.missing,
        }  # fmt: skip
        return {"encoding": data.encoding} | {key: part for key, part in stated.items() if part is not None}

    def check_columns(self, names: tuple[str, ...]) -> None:
        """Raise if a secret, a mechanism or a budget is about what is no attribute of the table."""
        budgets = self.release.budgets
        stated = {
            "secret": self.secrets, "release.mechanisms": self.release.mechanisms,
            "release.budgets": budgets if isinstance(budgets, dict) else {},
        }  # fmt: skip
        for key, part in stated.items():
            for name in part:
                if name not in names:
                    raise InputError(f"{self.file}: {key}: {unknown('attribute', name, names)}")


def _check(parsed: _ProjectFile) -> None:
    """Raise for what is wrong whatever the table is."""
    limits = {"protect.limit": parsed.protect.limit} | {
        f"secret.{name}.limit": item.limit for name, item in parsed.secret.items()
    }
    for key, limit in limits.items():
        if limit is not None:
            check_number(key, float(limit), at_least=0, infinite=True)
    if parsed.protect.delta is not None:
        check_number("protect.delta", parsed.protect.delta, above=0, below=1)
    if parsed.protect.draws is not None:
        check_whole("protect.draws", parsed.protect.draws, at_least=16)
        if parsed.protect.delta is None:
            raise InputError("`protect.draws` is for figures at delta; set `protect.delta`, or leave it out.")
    others = parsed.release.model_fields_set - {"plan"}
    if parsed.release.plan is not None and others:
        raise InputError(
            f"`release.{min(others)}` stands beside `release.plan`, which says how everything is released; "
            "leave one of them out."
        )
    budgets = parsed.release.budgets
    if isinstance(budgets, str) and budgets != CALIBRATE:
        fix = "Or a table of them, by attribute."
        raise invalid("release.budgets", "'calibrate' or a number", budgets, fix)
    stated = budgets if isinstance(budgets, dict) else {} if isinstance(budgets, str) else {"": budgets}
    for name, budget in stated.items():
        check_number(f"release.budgets{'.' * bool(name)}{name}", budget, above=0, below=_LARGEST)
    check_number("release.epsilon", parsed.release.epsilon, above=0, below=_LARGEST)
    if parsed.wanted.people is not None:
        check_whole("wanted.people", parsed.wanted.people, at_least=1)
    if parsed.wanted.precision is not None:
        check_number("wanted.precision", parsed.wanted.precision, above=0, below=1)
    if parsed.seed is not None:
        check_whole("seed", parsed.seed, at_least=0)
    for key, text in (("data.path", parsed.data.path), ("output", parsed.output)):
        if not text.strip():
            raise InputError(f"`{key}` must name a {'file' if key == 'data.path' else 'folder'}, got ''.")
    if parsed.data.path == "-":
        raise InputError("`data.path` must name a file that can be read again, not standard input.")
