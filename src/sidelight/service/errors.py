"""What a service refuses, by what whoever asked can do about it."""

from __future__ import annotations

from sidelight.foundation.errors import InputError, SidelightError


class NotFoundError(InputError):
    """There is no such task, round or document."""


class ConflictError(InputError):
    """What was asked for cannot follow what has happened already."""


class NotShownError(InputError):
    """The figures must not be shown: too few people, or they are not published."""


class StoreError(SidelightError):
    """The store did not answer: it is away, full or broken. What was asked may or may not have happened."""


class BusyError(SidelightError):
    """Too much is waiting to be stored; the sender should come back later."""
