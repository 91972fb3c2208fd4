"""Words that messages share: figures, names, budgets; and the model that all of them are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sidelight.schema import Kind
from sidelight.sources.dictionary import Unused

Real = float | Literal["infinity"]
"""A figure; "infinity" where it is infinite."""
ColumnKind = Kind | Unused
WorkKind = Literal["calibrate", "remedies", "collect", "attack"]
Status = Literal["waiting", "running", "done", "cancelled", "failed"]
PlanId = Annotated[str, Field(min_length=1, max_length=40)]
PlanName = Annotated[str, Field(min_length=1, max_length=100)]
Name = Annotated[str, Field(min_length=1, max_length=10_000)]
Budget = Annotated[float, Field(gt=0, lt=700, allow_inf_nan=False)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Message(BaseModel):
    """A part of what is said; nothing is guessed and nothing unknown is allowed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)
