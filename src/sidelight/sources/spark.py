"""Rows in Spark: the same questions, counts and batches, asked of a DataFrame.

Only the DataFrame API is used, so a session of Spark Connect serves as well. Spark itself answers what a
schema is found by; codes and counts come from the workers, where every partition goes through the local
engine's own steps: DuckDB's coding and the same compiled loops. Spark merges what the partitions counted.
This module loads PySpark, so it is loaded only where there is a DataFrame.
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
from itertools import chain, pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from sidelight.foundation.arrays import Codes, offsets
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.modules import require
from sidelight.schema import Schema
from sidelight.sources.cells import Stated
from sidelight.sources.counter import CountingPlan
from sidelight.sources.counts import Counts, Records, distinct_records, merge_records
from sidelight.sources.local import LocalSource
from sidelight.sources.memory import open_object
from sidelight.sources.names import ISO
from sidelight.sources.session import PURPOSE
from sidelight.sources.source import Source, Summary
from sidelight.sources.sql import connect, is_temporal
from sidelight.sources.table import (
    Engine,
    Place,
    Table,
    coded_batches,
    count_source,
    counted,
    is_worth_compiling,
    plan_of,
)  # fmt: skip

F: Any = require("pyspark.sql.functions", "spark", PURPOSE)
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
        reason = re.search(r"InputError: (.+)", str(error))
        if reason is None or isinstance(error, InputError):
            raise
        raise InputError(reason.group(1).strip()) from error


def gathered(frame: Any) -> pa.Table:
    """Run a job and bring its rows here."""
    with running():
        return frame.toArrow()


@dataclass(frozen=True, eq=False)
class SparkSource(Source):
    """A DataFrame that can be asked about."""

    frame: Any

    @cached_property
    def columns(self) -> dict[str, str]:
        """Every column's name and the name that DuckDB has for its type."""
        return open_object(self.frame.limit(0).toArrow()).columns

    def prepared(self, columns: Sequence[str], stated: Stated) -> SparkSource:  # noqa: ARG002 - all stay there
        """Return the source itself; a DataFrame has types, and its text is left as it is."""
        if stated.na is not None:
            raise InputError("`na` is not for Spark; replace such cells in the DataFrame first.")
        return self

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""
        parts = [F.count(F.lit(1))]
        for column in columns:
            value = self._value(column)
            nested = "[" in self.columns[column] or "(" in self.columns[column]
            parts += [F.count(value), F.lit(0) if nested else F.approx_count_distinct(value, _PRECISION)]
        figures = self._row(self.frame.agg(*(part.alias(str(i)) for i, part in enumerate(parts))))
        return figures[0], list(zip(figures[1::2], figures[2::2], strict=True))

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""
        return int(self._row(self.frame.agg(F.count_distinct(self._value(column))))[0])

    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; ties go to the smaller value."""
        values = self.frame.select(self._value(column).alias("value")).where("value IS NOT NULL")
        order = (F.col("count").desc(), F.col("value"))
        frequent = values.groupBy("value").count().orderBy(*order).limit(most).select("value").toArrow()
        connection = connect()
        connection.register("frequent", frequent)
        return [row[0] for row in connection.execute("SELECT value::VARCHAR FROM frequent").fetchall()]

    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""
        value = self._value(column)
        is_date = value.rlike(f"^({ISO})$") & value.try_cast("timestamp_ntz").isNotNull()
        return int(self._row(self.frame.agg(F.count_if(is_date)))[0])

    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Find out the summaries of columns of numbers that are not known yet, one after the other."""
        new = [column for column in columns if column not in self._summaries]
        self._summaries.update((column, self._summarised(column, bins)) for column in new)

    def _summarised(self, column: str, bins: int) -> Summary:
        value = F.col("value")
        numbers = self.frame.select(self._number(column).alias("value"))
        finite = numbers.where(F.abs(value) < math.inf)
        inside = F.when(F.abs(value) < math.inf, value)
        parts = (F.count(inside), F.min(inside), F.max(inside), F.min(value), F.max(value))
        count, low, high, least, most = self._row(numbers.agg(*parts))
        often = finite.groupBy("value").count().where(f"count >= {-(-count // bins)}").toArrow().to_pydict()
        masses = tuple(sorted(often["value"]))
        others = finite.where(~value.isin(*masses)) if masses else finite
        cuts = self._cuts(others, count - sum(often["count"]), bins)
        following = {mass: self._row(numbers.where(value > mass).agg(F.min("value")))[0] for mass in masses}
        return Summary(count, (low, high), (least, most), cuts, masses, following)

    def _cuts(self, finite: Any, count: int, bins: int) -> tuple[float, ...]:
        """Return the numbers that cut `count` finite ones into equally full bins.

        The number at a rank is asked for by a share between it and the next, which no rounding can move.
        """
        if not count:
            return ()
        ranks = [math.ceil(count * Fraction(repr(step / bins))) for step in range(1, bins)]
        shares = ", ".join(f"{(rank - 0.5) / count!r}D" for rank in ranks)
        cuts = F.expr(f"percentile_disc(array({shares})) WITHIN GROUP (ORDER BY value)")
        return tuple(float(cut) for cut in self._row(finite.agg(cuts))[0])

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
        value = named(column)
        kind = self.columns[column]
        if kind == "DECIMAL":
            return value.cast("double")
        if kind not in ("FLOAT", "DOUBLE"):
            return value
        return F.when(~F.isnan(value), (value + F.lit(0.0)).cast(kind.lower()))

    def _number(self, column: str) -> Any:
        """Return the column as a double, as DuckDB does; dates and times count seconds since 1970."""
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

    def _row(self, frame: Any) -> list[Any]:
        return list(frame.collect()[0])


def named(column: str) -> Any:
    """Return a column by its name, whatever signs the name has."""
    return F.col("`" + column.replace("`", "``") + "`")


class SparkEngine(Engine):
    """A cluster: workers code and count their partitions, Spark adds up."""

    keeps_row_numbers: ClassVar[bool] = False

    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""
        plan = plan_of(table.schema, sets)
        cells = _mapped(table, lambda work, batches: work.counts(batches, plan), "cell long, count long")
        merged = gathered(cells.groupBy("cell").sum("count"))
        shapes = [plan.shape(columns) for columns in plan.sets]
        at = offsets([math.prod(shape) for shape in shapes])
        flat = np.zeros(at[-1], dtype=np.int64)
        flat[merged.column(0).to_numpy()] = merged.column(1).to_numpy()
        parts = zip(pairwise(at), shapes, strict=True)
        return counted(table.schema, sets, [flat[a:b].reshape(shape) for (a, b), shape in parts])

    def records(self, table: Table, largest: int) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        columns = "record binary, weight long"
        distinct = _mapped(table, lambda work, batches: work.distinct(batches, largest), columns)
        merged = gathered(distinct.groupBy("record").sum("weight").limit(largest + 1))
        if merged.num_rows > largest or merged.column(0).null_count:
            return None
        packed = b"".join(merged.column(0).to_pylist())
        codes = np.frombuffer(packed, dtype=np.uint16).reshape(-1, len(table.schema))
        return distinct_records(table.schema, codes, merged.column(1).to_numpy().astype(np.float64))

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

    The function runs on the workers and gives the further columns, by name; `columns` are the names and types
    of all, as Spark writes them.
    """
    return _mapped(table, lambda work, batches: work.apply(batches, function), columns)


def _mapped(table: Table, work: Callable[[Partition, Batches], Batches], columns: str) -> Any:
    """Return the DataFrame of what some work makes of each partition's batches.

    Columns get plain names, since for workers Spark refuses some signs in a name.
    """
    if not isinstance(table.source, SparkSource):
        kind = type(table.engine).__name__
        raise invalid("table", "read from a Spark DataFrame", kind, "Use `collect`.")
    chosen = (named(name).alias(f"c{i}") for i, name in enumerate(table.schema.names))
    part = Partition(table.schema, table.source.label, is_worth_compiling(table))
    return table.source.frame.select(*chosen).mapInArrow(lambda batches: work(part, batches), columns)


@dataclass(frozen=True)
class Partition:
    """What a worker does with the batches of its partition, in which columns are called c0, c1 and so on.

    Messages call the table by its `label`; where there is enough work, the loops are `compiled` ones.
    """

    schema: Schema
    label: str
    compiled: bool

    def counts(self, batches: Batches, plan: CountingPlan) -> Iterator[pa.RecordBatch]:
        """Give the cells that the records are in, all sets in one line, and how many each has."""
        source = self._arriving(batches)
        if source is not None:
            cells = count_source(source, self.schema, plan, self.compiled, threads=1)
            flat = np.concatenate([part.reshape(-1) for part in cells])
            places = np.flatnonzero(flat)
            yield pa.record_batch({"cell": places.astype(np.int64), "count": flat[places]})

    def distinct(self, batches: Batches, largest: int) -> Iterator[pa.RecordBatch]:
        """Give the distinct records, each as the bytes of its codes, and how often each occurs.

        A partition that alone has more than `largest` gives one row without a record instead.
        """
        nothing = np.empty((0, len(self.schema)), dtype=np.uint16)
        coded = chain([nothing], self._coded(batches))
        parts = (distinct_records(self.schema, codes, np.ones(len(codes))) for codes in coded)
        merged = merge_records(parts, largest)
        if merged is None:
            yield pa.record_batch({"record": pa.nulls(1, pa.binary()), "weight": pa.array([0], pa.int64())})
            return
        packed = np.ascontiguousarray(merged.codes, dtype=np.uint16)
        width, buffers = packed.shape[1] * packed.itemsize, [None, pa.py_buffer(packed)]
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(packed), buffers)
        yield pa.record_batch({"record": fixed.cast(pa.binary()), "weight": merged.weights.astype(np.int64)})

    def apply(
        self, batches: Batches, function: Callable[[Codes, Place], dict[str, Any]]
    ) -> Iterator[pa.RecordBatch]:
        """Give what a function makes of the batches of codes, with each batch's place."""
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context else 0
        start = 0
        for codes in self._coded(batches):
            made = function(codes, Place(part, start))
            fixed = {"part": pa.array([part], pa.int32()), "start": pa.array([start], pa.int64())}
            yield pa.record_batch(fixed | {name: pa.array([value]) for name, value in made.items()})
            start += len(codes)

    def _coded(self, batches: Batches) -> Iterator[Codes]:
        source = self._arriving(batches)
        return iter(()) if source is None else coded_batches(source, self.schema, self.compiled)

    def _arriving(self, batches: Batches) -> LocalSource | None:
        """Return batches as something DuckDB scans once, in this thread; None if there are none."""
        rest = (batch.rename_columns(list(self.schema.names)) for batch in batches)
        first = next(rest, None)
        if first is None:
            return None
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rest))
        connection = connect(threads=1)
        return LocalSource(lambda: connection.from_arrow(reader), label=self.label)
