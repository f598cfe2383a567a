"""What long-running commands log: events with fields on stderr, as text for a terminal and JSON for collectors.

A line says when, how bad and what first, then its fields. Libraries' own logs are written so, too, from warning on.
"""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from horae.config.settings import Settings
from horae.worker.logs.capture import WHOSE

FIRST = ("timestamp", "level", "event")
STAMPED: tuple[Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logs(settings: Settings) -> None:
    """Set level and format for this process."""
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
    """Records of Python's logging, and its warnings, come out as events.

    Only this handler leaves out what is below its level: what functions log during executions is theirs from info on.
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
    """What a function logged names its execution.

    A traceback that was made a text already, so that secrets could be covered in it, stays within its line.
    """
    record = event["_record"]
    if record.exc_text and not record.exc_info:
        event["exception"], record.exc_text = record.exc_text, None
    return {**event, **getattr(record, WHOSE, {})}


def _renderers(as_text: bool) -> list[Processor]:
    if as_text:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain, pad_event_to=0)]
    return [structlog.processors.format_exc_info, _in_order, structlog.processors.JSONRenderer(default=str)]


def _in_order(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {**{name: event[name] for name in FIRST if name in event}, **event}
