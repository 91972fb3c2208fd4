"""Structured logs: one JSON object a line, about what operators and the machine do, never about senders."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

_log = logging.getLogger("sidelight.service")


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object; without the words of exceptions, which may quote what was sent."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        said = record.__dict__.get("said", {})
        head = {"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname.lower()}
        if record.exc_info and record.exc_info[0] is not None:
            said = {**said, "error": record.exc_info[0].__name__}
        return json.dumps({**head, "event": record.getMessage(), **said}, ensure_ascii=False, default=str)


def start_logs() -> None:
    """Write our logs, and the warnings of uvicorn, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("sidelight.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def log_event(event: str, **said: Any) -> None:
    """Log that something happened."""
    _log.info(event, extra={"said": said})
