"""Rows in Spark: the same questions, counts and batches, asked of a DataFrame.

Only the DataFrame API is used, so a session of Spark Connect serves as well. Spark itself answers what a
schema is found by; codes and counts come from the workers, where every partition goes through the local
engine's own steps: DuckDB's coding and the same compiled loops. Spark merges what the partitions counted.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from sidelight.foundation.errors import InputError
from sidelight.schema import Schema
from sidelight.sources.counting import CountingPlan
from sidelight.sources.counts import Codes, Counts, Records, distinct_records, merge_records
from sidelight.sources.dates import ISO
from sidelight.sources.engine import Place, coded_batches, count_source, counted, is_worth_compiling, plan_of
from sidelight.sources.local import LocalSource, open_object
from sidelight.sources.sql import is_temporal
from sidelight.sources.store import connect

if TYPE_CHECKING:
    from sidelight.sources.table import Table

T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]

_PRECISION = 0.02
"""The relative error of Spark's approximate number of distinct values; about that of DuckDB's."""


@contextmanager
def running() -> Iterator[None]:
    """Raise what a worker found wrong with the data as if it had been found here."""
    try:
        yield
    except Exception as error:
        found = re.search(r"InputError: (.+)", str(error))
        if found is None or isinstance(error, InputError):
            raise
        raise InputError(found.group(1).strip()) from error


def gathered(frame: Any) -> pa.Table:
    """Run a job and bring its rows here."""
    with running():
        return frame.toArrow()


def is_spark(rows: object) -> bool:
    """Whether an object is a DataFrame of Spark, classic or Connect."""
    return type(rows).__module__.startswith("pyspark.sql") and hasattr(rows, "mapInArrow")


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A DataFrame that can be asked about.

    Attributes:
        frame: the DataFrame.
        label: what to call it in messages.
        notes: what a reader must know about how the rows were taken.
    """

    frame: Any
    label: str = "the Spark DataFrame"
    notes: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> dict[str, str]:
        """Every column's name and the name that DuckDB has for its type."""
        return open_object(self.frame.limit(0).toArrow()).columns

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""
        from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

        parts = [F.count(F.lit(1))]
        for column in columns:
            value = self._value(column)
            nested = "[" in self.columns[column] or "(" in self.columns[column]
            parts += [
                F.count(value),
                F.lit(0) if nested else F.approx_count_distinct(value, _PRECISION),
            ]
        figures = self._row(self.frame.agg(*(part.alias(str(i)) for i, part in enumerate(parts))))
        return figures[0], list(zip(figures[1::2], figures[2::2], strict=True))

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""
        from pyspark.sql import functions as F  # noqa: N812

        return int(self._row(self.frame.agg(F.count_distinct(self._value(column))))[0])

    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; of equally frequent ones the first."""
        from pyspark.sql import functions as F  # noqa: N812

        values = self.frame.select(self._value(column).alias("value")).where("value IS NOT NULL")
        order = (F.col("count").desc(), F.col("value"))
        found = values.groupBy("value").count().orderBy(*order).limit(most).select("value").toArrow()
        connection = connect()
        connection.register("found", found)
        return [row[0] for row in connection.execute("SELECT value::VARCHAR FROM found").fetchall()]

    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""
        from pyspark.sql import functions as F  # noqa: N812

        value = self._value(column)
        is_date = value.rlike(f"^({ISO})$") & value.try_cast("timestamp_ntz").isNotNull()
        return int(self._row(self.frame.agg(F.count_if(is_date)))[0])

    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Remember the bins; Spark's jobs ask about one column at a time."""
        self._bins.update(dict.fromkeys(columns, bins))

    @cached_property
    def _bins(self) -> dict[str, int]:
        return {}

    def ends(self, column: str) -> tuple[float | None, float | None]:
        """Return the least and the greatest finite number; None where there is none."""
        _, low, high = self._summary(column)
        return low, high

    def masses(self, column: str) -> list[float]:
        """Return, in order, the finite numbers that at least one in `bins` of them equals."""
        if column in self._masses:
            return self._masses[column]
        least = -(-self._summary(column)[0] // self._bins[column])
        counts = self._finite(column).groupBy("value").count().where(f"count >= {least}")
        self._masses[column] = sorted(counts.select("value").toArrow().column("value").to_pylist())
        return self._masses[column]

    @cached_property
    def _masses(self) -> dict[str, list[float]]:
        return {}

    def quantiles(self, column: str) -> list[float]:
        """Return the numbers that cut the finite ones, the masses set apart, into equally full bins.

        The number at a rank is asked for by a share between it and the next, which no rounding can move.
        """
        from pyspark.sql import functions as F  # noqa: N812

        bins, apart = self._bins[column], self.masses(column)
        finite = self._finite(column).where(~F.col("value").isin(*apart)) if apart else self._finite(column)
        count = finite.count()
        if not count:
            return []
        ranks = [math.ceil(count * Fraction(repr(step / bins))) for step in range(1, bins)]
        shares = ", ".join(f"{(rank - 0.5) / count!r}D" for rank in ranks)
        cuts = F.expr(f"percentile_disc(array({shares})) WITHIN GROUP (ORDER BY value)")
        return [float(cut) for cut in self._row(finite.agg(cuts))[0]]

    def following(self, column: str, mass: float) -> float | None:
        """Return the least number above a mass."""
        from pyspark.sql import functions as F  # noqa: N812

        numbers = self.frame.select(self._number(column).alias("value")).where(F.col("value") > mass)
        least: float | None = self._row(numbers.agg(F.min("value")))[0]
        return least

    def reach(self, column: str) -> tuple[float, float]:
        """Return the least and the greatest number, infinite ones among them."""
        from pyspark.sql import functions as F  # noqa: N812

        value = self._number(column)
        low, high = self._row(self.frame.agg(F.min(value).alias("low"), F.max(value).alias("high")))
        return low, high

    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""
        frame = self.frame
        for attribute in schema:
            if attribute.missing == "drop":
                frame = frame.where(self._value(attribute.name).isNotNull())
        return int(frame.count())

    def reader(self, select: str, rest: str = "") -> pa.RecordBatchReader:
        """Return a reader of the rows of `SELECT select FROM source rest`, all of them brought here."""
        return open_object(self.frame.toArrow()).reader(select, rest)

    def _value(self, column: str) -> Any:
        """Return the column with NaN as missing, one value for 0.0 and -0.0, and decimals as doubles."""
        from pyspark.sql import functions as F  # noqa: N812

        value = named(column)
        kind = self.columns[column]
        if kind == "DECIMAL":
            return value.cast("double")
        if kind not in ("FLOAT", "DOUBLE"):
            return value
        return F.when(~F.isnan(value), (value + F.lit(0.0)).cast(kind.lower()))

    def _number(self, column: str) -> Any:
        """Return the column as a double, as DuckDB does; dates and times count seconds since 1970."""
        from pyspark.sql import functions as F  # noqa: N812

        kind, value = self.columns[column], self._value(column)
        if kind == "VARCHAR":
            kind, value = "TIMESTAMP", value.cast("timestamp_ntz")
        if kind == "FLOAT":
            value = value.cast("string")
        if not is_temporal(kind):
            return value.cast("double")
        if kind == "DATE":
            return F.unix_date(value).cast("double") * 86400
        if kind == "TIMESTAMP":
            start = F.lit("1970-01-01").cast("timestamp_ntz")
            return F.timestamp_diff("MICROSECOND", start, value).cast("double") / 1e6
        return F.unix_micros(value).cast("double") / 1e6

    def _summary(self, column: str) -> tuple[int, float | None, float | None]:
        """Return how many finite numbers a column has, the least and the greatest; asked for once."""
        from pyspark.sql import functions as F  # noqa: N812

        if column not in self._summaries:
            parts = (F.count("value"), F.min("value"), F.max("value"))
            self._summaries[column] = tuple(self._row(self._finite(column).agg(*parts)))
        return self._summaries[column]

    @cached_property
    def _summaries(self) -> dict[str, tuple[int, float | None, float | None]]:
        return {}

    def _finite(self, column: str) -> Any:
        """Return the finite numbers of a column as the one column `value`."""
        from pyspark.sql import functions as F  # noqa: N812

        numbers = self.frame.select(self._number(column).alias("value"))
        return numbers.where(F.abs(F.col("value")) < math.inf)

    def _row(self, frame: Any) -> list[Any]:
        return list(frame.collect()[0])


def named(column: str) -> Any:
    """Return a column by its name, whatever signs the name has."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + column.replace("`", "``") + "`")


class SparkEngine:
    """A cluster: workers code and count their partitions, Spark adds up."""

    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""
        plan = plan_of(table.schema, sets)
        schema, label, compiled = table.schema, table.source.label, is_worth_compiling(table)

        def count(batches: Batches) -> Iterator[pa.RecordBatch]:
            yield from _counted(batches, schema, plan, label, compiled)

        partial = _selected(table).mapInArrow(count, "cell long, count long")
        merged = gathered(partial.groupBy("cell").sum("count"))
        shapes = [plan.shape(columns) for columns in plan.sets]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        flat = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
        flat[merged.column(0).to_numpy()] = merged.column(1).to_numpy()
        parts = zip(np.split(flat, ends[:-1]), shapes, strict=True) if len(ends) else ()
        return counted(schema, sets, [cells.reshape(shape) for cells, shape in parts])

    def records(self, table: Table, largest: int) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        schema, label, compiled = table.schema, table.source.label, is_worth_compiling(table)

        def distinct(batches: Batches) -> Iterator[pa.RecordBatch]:
            yield from _distinct(batches, schema, label, compiled, largest)

        partial = _selected(table).mapInArrow(distinct, "record binary, weight long")
        merged = gathered(partial.groupBy("record").sum("weight").limit(largest + 1))
        if merged.num_rows > largest or merged.column(0).null_count:
            return None
        packed = b"".join(merged.column(0).to_pylist())
        codes = np.frombuffer(packed, dtype=np.uint16).reshape(-1, len(schema))
        return distinct_records(schema, codes, merged.column(1).to_numpy().astype(np.float64))

    def map_batches(self, table: Table, function: Callable[[Codes, Place], T]) -> Iterator[T]:
        """Apply `function` to batches of codes on the workers; its results are brought here in order."""
        from pyspark import cloudpickle

        dumps: Callable[[T], bytes] = cloudpickle.dumps

        def packed(codes: Codes, place: Place) -> dict[str, Any]:
            return {"result": dumps(function(codes, place))}

        done = gathered(map_frame(table, packed, "part int, start long, result binary"))
        for row in done.sort_by([("part", "ascending"), ("start", "ascending")]).column("result"):
            yield pickle.loads(row.as_py())  # noqa: S301 - our own workers wrote it


def map_frame(table: Table, function: Callable[[Codes, Place], dict[str, Any]], columns: str) -> Any:
    """Return the DataFrame with one row for each batch of codes: its part, its start, and what it became.

    Args:
        table: of a Spark DataFrame.
        function: gives the further columns, by name; it runs on the workers.
        columns: the names and types of all columns, as Spark writes them.
    """
    schema, label, compiled = table.schema, table.source.label, is_worth_compiling(table)

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from _mapped(batches, schema, label, compiled, function)

    return _selected(table).mapInArrow(work, columns)


def _selected(table: Table) -> Any:
    """Return the attributes' columns under plain names; for workers Spark refuses some signs in a name."""
    names = table.schema.names
    return table.source.frame.select(*(named(name).alias(f"c{i}") for i, name in enumerate(names)))


def _arriving(batches: Batches, schema: Schema, label: str) -> LocalSource | None:
    """Return a partition's batches as something DuckDB scans once, in this thread; None if there are none."""
    rest = (batch.rename_columns(list(schema.names)) for batch in batches)
    first = next(rest, None)
    if first is None:
        return None
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rest))
    connection = connect(threads=1)
    return LocalSource(lambda: connection.from_arrow(reader), label)


def _counted(
    batches: Batches, schema: Schema, plan: CountingPlan, label: str, compiled: bool
) -> Iterator[pa.RecordBatch]:
    """Give the cells that a partition's records are in, all sets in one line, and how many each has."""
    source = _arriving(batches, schema, label)
    if source is not None:
        cells = count_source(source, schema, plan, compiled, threads=1)
        flat = np.concatenate([part.reshape(-1) for part in cells])
        places = np.flatnonzero(flat)
        yield pa.record_batch({"cell": places.astype(np.int64), "count": flat[places]})


def _distinct(
    batches: Batches, schema: Schema, label: str, compiled: bool, largest: int
) -> Iterator[pa.RecordBatch]:
    """Give a partition's distinct records, each as the bytes of its codes, and how often each occurs.

    A partition that alone has more than `largest` gives one row without a record instead.
    """
    source = _arriving(batches, schema, label)
    if source is None:
        return
    nothing = distinct_records(schema, np.empty((0, len(schema)), dtype=np.uint16), np.empty(0))
    parts = (
        distinct_records(schema, codes, np.ones(len(codes)))
        for codes in coded_batches(source, schema, compiled)
    )
    merged = merge_records(chain([nothing], parts), largest)
    if merged is None:
        yield pa.record_batch({"record": pa.nulls(1, pa.binary()), "weight": pa.array([0], pa.int64())})
        return
    packed = np.ascontiguousarray(merged.codes, dtype=np.uint16)
    width = packed.shape[1] * packed.itemsize
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(packed), [None, pa.py_buffer(packed)])
    yield pa.record_batch({"record": fixed.cast(pa.binary()), "weight": merged.weights.astype(np.int64)})


def _mapped(
    batches: Batches,
    schema: Schema,
    label: str,
    compiled: bool,
    function: Callable[[Codes, Place], dict[str, Any]],
) -> Iterator[pa.RecordBatch]:
    """Give what a function makes of a partition's batches of codes, with the batch's place."""
    from pyspark import TaskContext

    context = TaskContext.get()
    part = context.partitionId() if context else 0
    source = _arriving(batches, schema, label)
    start = 0
    for codes in coded_batches(source, schema, compiled) if source is not None else ():
        made = function(codes, Place(part, start))
        fixed = {"part": pa.array([part], pa.int32()), "start": pa.array([start], pa.int64())}
        yield pa.record_batch(fixed | {name: pa.array([value]) for name, value in made.items()})
        start += len(codes)
