"""The logs of long-running commands: events with fields on stderr, as text for a terminal and JSON for collectors.

A line starts with the time, the level and the event; its fields follow. Logs of libraries have the same format, from
level warning on.
"""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from horae.config.settings import Settings
from horae.worker.logs.capture import RECORD_ATTRIBUTE

FIRST = ("timestamp", "level", "event")
STAMPED: tuple[Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logs(settings: Settings) -> None:
    """Set the level and format of this process's logs."""
    level = getattr(logging, settings.log_level.upper())
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    renderers = _renderers(as_text)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *STAMPED, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _join_libraries(max(level, logging.WARNING), renderers)


def _join_libraries(level: int, renderers: list[Processor]) -> None:
    """Write records of Python's logging, and its warnings, as events.

    The level applies to this handler only, because logs of functions during executions are stored from level info on.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *STAMPED, _of_execution],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(capture=True)


def _of_execution(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Add the execution's fields to a record that a function logged.

    The worker may have turned the record's traceback into text, to mask secrets in it. Such a text becomes a field of
    the event, so that it stays within the event's line.
    """
    record = event["_record"]
    if record.exc_text and not record.exc_info:
        event["exception"], record.exc_text = record.exc_text, None
    return {**event, **getattr(record, RECORD_ATTRIBUTE, {})}


def _renderers(as_text: bool) -> list[Processor]:
    if as_text:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain, pad_event_to=0)]
    return [structlog.processors.format_exc_info, _in_order, structlog.processors.JSONRenderer(default=str)]


def _in_order(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {**{name: event[name] for name in FIRST if name in event}, **event}
