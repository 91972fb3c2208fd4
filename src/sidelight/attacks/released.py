"""Released: the reports that people sent under a plan, one row for each person, and their file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import InputError, invalid, unknown
from sidelight.foundation.files import write_atomically
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms import Mechanism, Reports, reports_from_arrow, reports_to_arrow
from sidelight.mechanisms.numeric import Additive
from sidelight.plan import Plan
from sidelight.schema import Schema

_PLAN_KEY = b"sidelight.plan"
_SIMULATION_KEY = b"sidelight.is_simulation"


@dataclass(frozen=True, eq=False)
class Released:
    """What an attacker sees.

    Attributes:
        plan: what was released and how.
        columns: the reports of every released attribute.
    """

    plan: Plan
    columns: Mapping[str, Reports]

    def __post_init__(self) -> None:
        for name in self.plan.names:
            if name not in self.columns:
                raise InputError(f"the plan releases {name!r}, but there are no reports of it.")
        for name in self.columns:
            if name not in self.plan.names:
                raise unknown("released attribute", name, self.plan.names)
        if len({len(reports) for reports in self.columns.values()}) > 1:
            raise InputError("every attribute needs as many reports as there are people; they differ.")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Reports:
        if name not in self.columns:
            raise unknown("released attribute", name, self.columns)
        return self.columns[name]

    @property
    def is_simulation(self) -> bool:
        """Whether any of the noise came from a seed."""
        return any(reports.is_simulation for reports in self.columns.values())

    def write(self, path: str | Path) -> Path:
        """Write the reports to a Parquet file that carries its plan."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: reports_to_arrow(reports) for name, reports in self.columns.items()})
        metadata = {_PLAN_KEY: self.plan.to_json(), _SIMULATION_KEY: str(int(self.is_simulation))}
        return write_atomically(
            path, lambda temporary: pq.write_table(table.replace_schema_metadata(metadata), temporary)
        )

    @classmethod
    def read(cls, path: str | Path) -> Released:
        """Read the reports and their plan from a file that `write` made."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException):
            raise InputError(f"{path} cannot be read; name a Parquet file of reports.") from None
        metadata = table.schema.metadata or {}
        if _PLAN_KEY not in metadata:
            raise InputError(f"{path} carries no plan, so it is no file of reports; name one that is.")
        plan = Plan.from_json(metadata[_PLAN_KEY].decode(), str(path))
        simulated = metadata.get(_SIMULATION_KEY) == b"1"
        columns = {
            name: reports_from_arrow(table.column(name), is_simulation=simulated)
            for name in table.column_names
        }
        return cls(plan, columns)


def is_reports_file(path: str | Path) -> bool:
    """Whether the file is Parquet and carries a plan."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        return False
    try:
        return _PLAN_KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def release(codes: ArrayLike, schema: Schema, plan: Plan, *, seed: int | None = None) -> Released:
    """Randomise coded records as the plan says; secure without a seed, a simulation with one.

    Args:
        codes: (n, attributes) the records.
        schema: the attribute of each column of `codes`.
        plan: what is released; each person reports once.
        seed: for simulation.
    """
    array = check_records(codes, schema)
    columns = {}
    for part in plan.releases:
        if part.times > 1:
            raise invalid(f"times of {part.name}", "1 for an attack", part.times, "Release it once.")
        if schema[part.name] != part.attribute:
            raise InputError(f"the plan codes {part.name!r} in another way than the records.")
        values = array[:, schema.index(part.name)]
        mechanism = part.randomiser()
        inputs = _inputs(mechanism, values)
        columns[part.name] = mechanism.randomise(inputs, seed=derive_seed(seed, part.name))
    return Released(plan, columns)


def check_records(codes: ArrayLike, schema: Schema) -> NDArray[Any]:
    """Return coded records after checking that they have a column for each attribute."""
    array = np.asarray(codes)
    if array.ndim != 2 or array.shape[1] != len(schema) or array.dtype.kind not in "ui":
        raise invalid("records", f"codes of the shape (rows, {len(schema)})", f"{array.dtype} {array.shape}")
    return array


def _inputs(mechanism: Mechanism, codes: NDArray[Any]) -> NDArray[Any]:
    """Return what the mechanism takes: the codes, or the number that stands for each."""
    return mechanism.support[codes] if isinstance(mechanism, Additive) else codes
