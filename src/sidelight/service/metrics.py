"""What Prometheus may read: how much is done and how long it takes, nothing about reports or senders."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

SEVERAL = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which several workers add up; it must be set before this is loaded."""


disable_created_metrics()  # type: ignore[no-untyped-call]  # they tell when a report of a kind came first


class Metrics:
    """The figures of one process, or of all workers together."""

    type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        """Begin at nothing."""
        self._registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self._registry, "namespace": "sidelight"}
        self.reports = Counter("reports", "Reports answered, by answer.", ["answer"], **made)
        self.uploads = Counter("uploads", "Uploads answered, by status.", ["status"], **made)
        self.seconds = Histogram("upload_seconds", "From an upload's last byte to its answer.", **made)
        self.failures = Counter("store_failures", "Requests that the store did not answer.", **made)

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        if SEVERAL not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
