"""Options about the use of estimates: the precision that is wanted, and a guess that they must beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sidelight as sl
from sidelight.cli.options import flag
from sidelight.foundation.errors import InputError, check_number


@dataclass(frozen=True)
class Wanted:
    """How good estimates are to be."""

    within: float | None = flag(
        None,
        "Say how many people make every attribute right to this, as 0.02 for 2 percentage points [0.01].",
    )
    prior: str | None = flag(
        None, "A public table whose frequencies could be guessed instead; estimates should beat them too."
    )

    def __post_init__(self) -> None:
        """Refuse, before the work, what is wrong for every table."""
        if self.within is not None:
            check_number("within", self.within, above=0, below=1)

    def guess(self, schema: sl.Schema, encoding: str = "utf-8") -> Mapping[str, Any] | None:
        """Return the public table's frequencies, of those attributes that it has."""
        if self.prior is None:
            return None
        columns = sl.sources.column_names(self.prior, encoding=encoding)
        names = [name for name in schema.names if name in columns]
        if not names:
            raise InputError(
                f"{self.prior} has none of the attributes {', '.join(schema.names[:5])}, so nothing can be "
                "guessed from it; name a table that has, or leave --prior out."
            )
        kept = schema.select(names)
        return sl.transport.true_frequencies(sl.read(self.prior, schema=kept, encoding=encoding), kept)
