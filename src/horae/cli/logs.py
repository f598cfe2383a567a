"""What long-running commands log: events with fields on stderr, as text for a terminal and JSON for collectors."""

import logging
import sys
from typing import Any

import structlog

from horae.config import Settings


def configure_logs(settings: Settings) -> None:
    """Set level and format for this process; libraries' own logs join from warning on."""
    level = getattr(logging, settings.log_level.upper())
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_renderers(as_text),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        level=max(level, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )


def _renderers(as_text: bool) -> list[Any]:
    if as_text:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain, pad_event_to=0)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
