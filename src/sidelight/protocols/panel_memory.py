"""What a panel must remember between its rounds: everyone's secret, held values, and who took part when.

In a real collection every device has a memory of its own. Whoever collects from a table, or simulates, holds
all of them: one secret, from which each person's is derived by a name, so that the same person has the same
responses in every round, whatever row the person is in. Names are not kept, nor ever written into reports;
whoever has the file can undo the noise, so only its owner may read it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from sidelight.foundation import files
from sidelight.foundation.arrays import AnyCodes, Mask, Positions, Whole
from sidelight.foundation.errors import InputError, check_is, invalid, naming
from sidelight.foundation.randomness import derive_seed, order_key
from sidelight.foundation.strict import Strict, parsed_table, versioned
from sidelight.mechanisms.longitudinal.memory import SECRET_BYTES, prefixed
from sidelight.plan import Plan
from sidelight.protocols.panel import Panel, check_same_panel
from sidelight.protocols.records import Division

PANEL_VERSION = 1
PANEL_KEY = b"sidelight.panel"
"""Where the metadata of a memory's file hold all but the people."""
_NOBODY = -1
"""Stands for the code of a value that is not held."""
_NAME_BYTES = 16


class _HeadFile(Strict):
    version: int
    name: str
    secret: str
    is_simulation: bool
    plan: str
    division: Division
    epoch: int | None
    follow_changes: bool
    made: list[int]
    held_epoch: str
    held: list[str] = Field(default_factory=list)
    seal: str = ""


class PanelMemory:
    """The memory of a panel, which goes on from round to round; see the module.

    Attributes:
        panel: how people are asked.
        name: what the panel is called in report files, drawn at random.
        is_simulation: whether the secret came from a seed, so that responses protect nobody.
        made: the rounds that were collected, in order.
    """

    def __init__(self, panel: Panel, secret: bytes, name: str, *, is_simulation: bool) -> None:
        check_is("panel", panel, Panel, "Panel(plan) is one.")
        if len(secret) != SECRET_BYTES:
            raise invalid("secret", f"{SECRET_BYTES} bytes", f"{len(secret)} bytes")
        self.panel, self.name, self.is_simulation = panel, name, is_simulation
        self.made: list[int] = []
        self._on_file: frozenset[int] = frozenset()
        self._secret = secret
        self._places: dict[bytes, int] = {}
        self._took_part: dict[int, Positions] = {}
        self._held: dict[str, Whole] = {}
        self._held_epoch = ""

    @classmethod
    def new(cls, panel: Panel, seed: int | None = None) -> PanelMemory:
        """Return the memory of a panel that begins, with a new secret; for simulation, that of the seed."""
        if seed is None:
            return cls(panel, os.urandom(SECRET_BYTES), os.urandom(_NAME_BYTES).hex(), is_simulation=False)
        secret, name = (order_key(derive_seed(seed, f"panel/{part}")) for part in ("secret", "name"))
        return cls(panel, secret, name[:_NAME_BYTES].hex(), is_simulation=True)

    def __len__(self) -> int:
        """How many people took part so far."""
        return len(self._places)

    def check(self, panel: Panel, number: int, *, is_simulation: bool) -> None:
        """Raise unless a round of this panel may be collected now."""
        label = "the panel of this memory"
        check_same_panel(panel, self.panel, label)
        panel.check_round(number)
        if number in self.made:
            later = max(self.made) + 1
            fix = "it was the last one" if later > panel.rounds else f"go on with round {later}"
            raise InputError(
                f"round {number} was collected already, and a second report under other noise would say "
                f"more than one; {fix}."
            )
        if self.made and number < max(self.made):
            raise InputError(
                f"round {number} comes before round {max(self.made)}, which was collected already; rounds "
                "go forward."
            )
        if is_simulation != self.is_simulation:
            told = "came from a seed; give one" if self.is_simulation else "protects people; leave `seed` out"
            raise InputError(f"the secret of this memory {told}.")

    def in_round(self, people: Sequence[str], number: int) -> Mask:
        """Return who is drawn into a round where people are divided: everyone into one, evenly."""
        rounds = self.panel.rounds
        drawn = (int.from_bytes(key[:8], "big") for key in self._keyed("division", people))
        return np.array([word * rounds >> 64 == number - 1 for word in drawn], dtype=np.bool_)

    def secrets(self, people: Sequence[str]) -> list[bytes]:
        """Return everyone's own secret, which `KeyedMemory` takes."""
        return self._keyed("device", people)

    def _keyed(self, purpose: str, people: Sequence[str]) -> list[bytes]:
        """Return what the secret makes of everybody's name for a purpose."""
        start = prefixed(("sidelight panel 1", purpose))
        try:
            return [hmac.digest(self._secret, start + prefixed((name,)), "sha256") for name in people]
        except UnicodeEncodeError:
            raise InputError("a name among `people` holds half a character; names are text.") from None

    def take_part(self, people: Sequence[str], number: int) -> Positions:
        """Note who reports in a round, and return their places."""
        name, often = Counter(people).most_common(1)[0] if people else ("", 0)
        if often > 1:
            raise InputError(f"{name!r} is named {often} times; a person reports once in a round.")
        keys = [key[:_NAME_BYTES] for key in self._keyed("name", people)]
        rows = np.array([self._places.setdefault(key, len(self._places)) for key in keys], dtype=np.intp)
        self.made.append(number)
        self._took_part[number] = rows
        return rows

    def stayed(self, number: int) -> list[int]:
        """Return for each earlier round how many of those in this one had reported in it."""
        is_there = np.zeros(len(self), dtype=np.bool_)
        is_there[self._took_part[number]] = True
        nobody = np.arange(0)
        return [int(is_there[self._took_part.get(at, nobody)].sum()) for at in range(1, number)]

    def hold(self, attribute: str, rows: Positions, codes: AnyCodes, number: int) -> AnyCodes:
        """Return the values that hold in a round's epoch: everyone's first that was reported in it."""
        epoch = self.panel.epoch_of(number)
        if epoch != self._held_epoch:
            self._held, self._held_epoch = {}, epoch
        before = self._held.get(attribute, np.zeros(0, dtype=np.int64))
        held = np.full(len(self), _NOBODY, dtype=np.int64)
        held[: len(before)] = before
        is_new = held[rows] == _NOBODY
        held[rows[is_new]] = codes[is_new]
        self._held[attribute] = held
        return held[rows].astype(codes.dtype)

    @classmethod
    def read(cls, path: str | Path) -> PanelMemory:
        """Read a memory from its file, strictly."""
        import pyarrow.parquet as pq

        if not Path(path).is_file():
            raise InputError(f"there is no file {path}; the first round of a panel makes its memory.")
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{path} is no memory of a panel, or it is truncated: {reason}") from None
        with naming(str(path)):
            return cls._from_arrow(table, str(path))

    @classmethod
    def _from_arrow(cls, table: pa.Table, label: str) -> PanelMemory:
        stored = (table.schema.metadata or {}).get(PANEL_KEY)
        if stored is None:
            raise InputError("it is no memory of a panel; name the file that the first round made.")
        data = parsed_table(stored.decode("utf-8", "replace"), label)
        head = versioned(_HeadFile, data, label, PANEL_VERSION, "memory of a panel")
        _check_columns(head, table)
        panel = Panel(Plan.from_json(head.plan), head.division, head.epoch, head.follow_changes)
        people = table.column("person").to_pylist()
        made = cls(panel, _decoded(head.secret), head.name, is_simulation=head.is_simulation)
        made._places = {key: place for place, key in enumerate(people)}
        made.made, made._on_file = list(head.made), frozenset(head.made)
        for number in head.made:
            made._took_part[number] = np.flatnonzero(np.asarray(table.column(f"round {number}")))
        made._held = {name: np.array(table.column(f"held {name}"), dtype=np.int64) for name in head.held}
        made._held_epoch = head.held_epoch
        return made

    def write(self, path: str | Path) -> Path:
        """Write the memory for its owner alone to read; the file of another panel stays.

        So does one that has gone on since this memory was read: both would report of the same round. Send
        reports only when this has returned; what they say of a round is then remembered whatever happens.
        """
        import pyarrow.parquet as pq

        target = Path(os.path.realpath(path))  # behind a link it is the file that goes on
        if not target.parent.is_dir():
            raise InputError(f"{path} cannot be written: its folder does not exist.")
        table = self._to_arrow()
        with files.locked(target, "memory", "wait for it, and see which rounds it has then"):
            if target.exists():
                there = PanelMemory.read(target)
                if there.name != self.name or not self._on_file.issuperset(there.made):
                    raise InputError(
                        f"{path} is the memory of another panel, or knows rounds that this one does not; "
                        "name another file."
                    )
            files.write_atomically(target, lambda place: pq.write_table(table, place), private=True)
            files.sync_folder(target.parent)
        self._on_file = frozenset(self.made)
        return Path(path)

    def _to_arrow(self) -> pa.Table:
        columns: dict[str, Any] = {"person": pa.array(list(self._places), type=pa.binary(_NAME_BYTES))}
        for number, rows in self._took_part.items():
            is_there = np.zeros(len(self), dtype=np.bool_)
            is_there[rows] = True
            columns[f"round {number}"] = is_there
        for name, codes in self._held.items():
            padded = np.concatenate([codes, np.full(len(self) - len(codes), _NOBODY)])
            columns[f"held {name}"] = padded
        head = _HeadFile(
            version=PANEL_VERSION, name=self.name, secret=b64encode(self._secret).decode(),
            is_simulation=self.is_simulation, plan=self.panel.plan.to_json(), division=self.panel.division,
            epoch=self.panel.epoch, follow_changes=self.panel.follow_changes, made=self.made,
            held_epoch=self._held_epoch, held=list(self._held),
        )  # fmt: skip
        table = pa.table(columns)
        sealed = head.model_copy(update={"seal": _seal(head, table)})
        return table.replace_schema_metadata({PANEL_KEY: json.dumps(sealed.model_dump())})


def _seal(head: _HeadFile, table: pa.Table) -> str:
    """Return a digest of all that is remembered: were one bit of the secret changed, all responses were."""
    digest = hashlib.blake2b(digest_size=_NAME_BYTES)
    digest.update(json.dumps(head.model_dump(exclude={"seal"}), sort_keys=True).encode())
    digest.update(b"".join(table.column("person").to_pylist()))
    for column in table.columns[1:]:
        digest.update(np.asarray(column).tobytes())
    return digest.hexdigest()


def _check_columns(head: _HeadFile, table: pa.Table) -> None:
    """Raise unless a table is what the head says, whole and unchanged."""
    names = ["person", *(f"round {n}" for n in head.made), *(f"held {name}" for name in head.held)]
    rounds, held = [pa.bool_()] * len(head.made), [pa.int64()] * len(head.held)
    kinds = [pa.binary(_NAME_BYTES), *rounds, *held]
    if table.schema.names != names or table.schema.types != kinds or head.made != sorted(set(head.made)):
        raise InputError("it is damaged: its columns are not those of its rounds and held values.")
    is_whole = not any(column.null_count for column in table.columns)
    if (
        not is_whole
        or len(pc.unique(table.column("person"))) < table.num_rows
        or head.seal != _seal(head, table)
    ):
        raise InputError(
            "it is damaged: its content is not what was written; take a copy that is whole and as recent."
        )


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InputError("it is damaged: its secret is not base 64.") from None
