"""Releases drawn and weighed on a GPU, for a table and reports that can be listed.

With every record's values as indicators x and a report's log-likelihoods a, both relative to the first value
of each attribute, ln Pr(release | record) is a product a x up to a number for each release. So all records
are weighed by one product of matrices in single precision and an exponential.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.modules import require
from sidelight.leakage.totals.certificate import DrawnRatios, Pair
from sidelight.leakage.totals.draws import DrawnBlock

if TYPE_CHECKING:
    from sidelight.belief import Belief

_CELLS = 1 << 30
"""So many likelihoods of a release and a record are held at a time: 4 GiB."""
_DRAWS = 1 << 18
_CHUNK = 512
"""So many likelihoods are added up in single precision before their sum is kept in double."""
_NOTHING = -1e4
"""The log-likelihood of rows that only fill up a chunk: its exponential is 0."""
_RANGE = 80.0
"""Beyond e^-80 or e^80, single precision would lose digits, or everything."""
_UNIT = 2.0**-24


@dataclass(frozen=True, eq=False)
class DeviceSampler:
    """Draws releases of a table's records on a device; see `draws.ReleaseSampler`.

    Attributes:
        codes: (records, attributes) of the reported attributes but the secret, sorted by the secret's value.
        weights: (records,).
        starts: (possible values + 1,) where the records of each possible value of the secret begin.
        tables: Pr(report | value) of each reported attribute but the secret, shape (values, reports).
        own: the same of the secret's own report, its possible values only; None if it is not seen.
        device: as torch names it.
        seed: of the device's coins; None for the operating system's.
    """

    codes: Codes
    weights: Array
    starts: Positions
    tables: tuple[Array, ...]
    own: Array | None
    device: str
    seed: int | None

    @classmethod
    def of(
        cls, belief: Belief, tables: Mapping[str, Array], secret: str, device: str, seed: int | None
    ) -> DeviceSampler:
        """Prepare reports that can be listed; `tables` holds Pr(report | value) of each."""
        records = belief.records
        if records is None or belief.smoothing:
            raise InputError(
                f"the device {device!r} weighs the records of a table without smoothing; use kind='joint' "
                "and smoothing=0, or the device 'cpu'."
            )
        values = records.codes[:, records.schema.index(secret)]
        order = np.argsort(values, kind="stable")
        possible, firsts = np.unique(values[order], return_index=True)
        names = [name for name in tables if name != secret]
        own = tables.get(secret)
        sampler = cls(
            np.ascontiguousarray(records.codes[order][:, [records.schema.index(name) for name in names]]),
            records.weights[order],
            np.append(firsts, len(order)),
            tuple(tables[name] for name in names),
            None if own is None else own[possible],
            device,
            seed,
        )
        sampler.check_range()
        return sampler

    @property
    def possible(self) -> Positions:
        """The places of the values of the secret that can occur."""
        return np.arange(len(self.starts) - 1)

    def check_range(self) -> None:
        """Raise if single precision cannot hold the likelihoods."""
        if not self._reach <= _RANGE:
            raise InputError(
                f"the releases move odds by up to e^{self._reach:.3g}, more than single precision holds "
                f"(e^{_RANGE:g}); use the device 'cpu'."
            )

    @cached_property
    def _reach(self) -> float:
        """By how much the logarithms of two records' likelihoods, weights included, differ at most."""
        with np.errstate(divide="ignore"):
            spans = [float(np.ptp(np.log(table), axis=0).max()) for table in self.tables]
        return math.fsum(spans) + math.log(float(self.weights.max() / self.weights.min()))

    @property
    def error(self) -> float:
        """How far a logarithm may be from the truth.

        Each term of an exponent and each addition to it rounds once, relative to what the exponent reaches;
        the exponential and the sum of a chunk round as often as they have terms.
        """
        return ((4 * len(self.tables) + 8) * max(self._reach, 1.0) + _CHUNK + 8) * _UNIT

    @cached_property
    def _torch(self) -> Any:
        torch = require("torch", "neural", f"drawing on the device {self.device!r}")
        is_known = self.device == "cpu" or re.fullmatch(r"cuda(:\d+)?", self.device)
        if not is_known or (self.device != "cpu" and not torch.cuda.is_available()):
            raise invalid("device", "'cpu', or a 'cuda' that this machine has", self.device)
        if torch.get_float32_matmul_precision() != "highest":  # the stated error would not hold
            raise InputError(
                "torch multiplies matrices with fewer digits than single precision has; undo "
                "torch.set_float32_matmul_precision, or use the device 'cpu'."
            )
        return torch

    @cached_property
    def _coins(self) -> Any:
        coins = self._torch.Generator(device=self.device)
        _ = coins.seed() if self.seed is None else coins.manual_seed(self.seed)
        return coins

    @cached_property
    def _padded(self) -> Positions:
        """The records, those of each value followed by as many -1 as fill up a chunk."""
        runs = [np.arange(a, b) for a, b in pairwise(self.starts)]
        return np.concatenate([np.pad(run, (0, -len(run) % _CHUNK), constant_values=-1) for run in runs])

    @cached_property
    def _chunks(self) -> list[int]:
        """How many chunks the records of each value of the secret fill."""
        return [-(-int(b - a) // _CHUNK) for a, b in pairwise(self.starts)]

    @cached_property
    def _indicators(self) -> Any:
        """Every record's values but the first, its weight's logarithm, and a 1, (columns, records)."""
        torch = self._torch
        codes = self._codes[self._on(self._padded)]
        weights = np.log(self.weights / self.weights.min())
        logs = self._on(np.where(self._padded < 0, _NOTHING, weights[self._padded]))
        columns = [
            codes[:, place] == x for place, table in enumerate(self.tables) for x in range(1, len(table))
        ]
        return torch.stack([column.to(torch.float32) for column in (*columns, logs, torch.ones_like(logs))])

    @cached_property
    def _codes(self) -> Any:
        return self._on(self.codes.astype(np.int64))

    @cached_property
    def _log_masses(self) -> Any:
        return self._on(np.log(np.add.reduceat(self.weights, self.starts[:-1])))

    @cached_property
    def _laws(self) -> list[tuple[Any, Any]]:
        """Of each attribute: the reach of each report, and its log-likelihoods beside that of value 0."""
        logs = [np.log(table).T for table in self.tables]
        return [
            (self._on(np.cumsum(table, axis=1)), self._on(log - log[:, :1]))
            for table, log in zip(self.tables, logs, strict=True)
        ]

    def _on(self, array: NDArray[Any]) -> Any:
        return self._torch.as_tensor(array, device=self.device)

    def block(self, count: int, floor: float) -> DrawnBlock:
        """Draw so many releases given each value of the secret; see `DrawnRatios` for the floor."""
        torch = self._torch
        # As `DrawnBlock.of`, but where the draws are: to fetch and sort them all would take 50 times as long.
        ratios: dict[Pair, DrawnRatios] = {}
        moves = np.empty((len(self.possible), count))
        for row in range(len(self.possible)):
            logs = torch.cat(list(self._logs(row, count)))
            moves[row] = (logs.amax(dim=1) - logs.amin(dim=1)).cpu().numpy()
            for column in range(len(self.possible)):
                if column != row:
                    gains = logs[:, row] - logs[:, column]
                    tail = torch.sort(gains[gains > floor]).values.cpu().numpy()
                    ratios[row, column] = DrawnRatios(tail, count)
        return DrawnBlock(count, ratios, moves)

    def _logs(self, row: int, count: int) -> Iterator[Any]:
        """Yield ln Pr(release | value) of releases drawn given one value, this one's rounded up."""
        torch = self._torch
        begin, end = int(self.starts[row]), int(self.starts[row + 1])
        reach = self._on(np.cumsum(self.weights[begin:end]))
        for start in range(0, count, _DRAWS):
            size = min(_DRAWS, count - start)
            points = torch.rand(size, generator=self._coins, device=self.device, dtype=torch.float64)
            places = torch.searchsorted(reach, points * reach[-1], right=True).clamp(max=end - begin - 1)
            reports = self._reported(self._codes[begin + places])
            step = max(1, _CELLS // len(self._padded))
            logs = torch.cat([self._weighed(part) for part in reports.split(step)])
            if self.own is not None:
                logs = logs + self._own_logs(row, size)
            logs[:, row] += 2 * self.error
            yield logs

    def _reported(self, codes: Any) -> Any:
        """Have everybody report; return the log-likelihoods, less those of the drawn record itself."""
        torch = self._torch
        parts = []
        itself = torch.zeros(len(codes), device=self.device, dtype=torch.float64)
        for place, (reach, logs) in enumerate(self._laws):
            chosen = logs[self._choose(reach[codes[:, place]])]
            itself += torch.gather(chosen, 1, codes[:, place : place + 1])[:, 0]
            parts.append(chosen[:, 1:])
        ones = torch.ones_like(itself)
        return torch.column_stack([*parts, ones, -itself]).to(torch.float32)

    def _choose(self, reach: Any) -> Any:
        """Return one report for each row of probabilities that were added up."""
        torch = self._torch
        points = torch.rand((len(reach), 1), generator=self._coins, device=self.device, dtype=torch.float64)
        return (points * reach[:, -1:] >= reach).sum(dim=1).clamp(max=reach.shape[1] - 1)

    def _weighed(self, reports: Any) -> Any:
        """Return ln Pr(release | value) up to a number for each release, shape (releases, values)."""
        torch = self._torch
        likelihoods = (reports @ self._indicators).exp_()
        chunks = likelihoods.view(len(reports), -1, _CHUNK).sum(dim=2).to(torch.float64)
        sums = [part.sum(dim=1) for part in chunks.split(self._chunks, dim=1)]
        return torch.log(torch.stack(sums, dim=1)) - self._log_masses

    def _own_logs(self, row: int, count: int) -> Any:
        """Return ln Pr(own report | value) of reports drawn given one value, shape (count, values)."""
        own = self._on(np.asarray(self.own))
        reach = self._torch.cumsum(own[row : row + 1], dim=1).expand(count, -1)
        return self._torch.log(own.T)[self._choose(reach)]
