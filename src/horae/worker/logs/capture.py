"""Capture of Python's log records that are made during an execution, for its log.

Printed text belongs to the execution's log, too, if its function runs in its own process. In a thread or on the loop,
printed text is the worker's own output, because everything that the worker runs shares it.
"""

import logging

from horae.model.base.trace import trace_id_of
from horae.worker.code.context import Context, current_or_none

WHOSE = "horae"  # attribute of a record with its execution, for other handlers


class LogCapture(logging.Handler):
    """Sends a record to the execution that made it; records outside of executions are handled as usual."""

    def __init__(self, former: int) -> None:
        super().__init__()
        self.former = former  # the root logger's own level

    def emit(self, record: logging.LogRecord) -> None:
        context = current_or_none()
        if context is not None:
            if context._secrets:
                self._cover(record, context)
            context._port.log("log", self.format(record))
            setattr(record, WHOSE, _whose(context))
        elif logging.lastResort and record.levelno >= logging.WARNING and self._is_alone():
            logging.lastResort.handle(record)

    def _cover(self, record: logging.LogRecord, context: Context) -> None:
        """Mask secrets in the record itself, since other handlers may write it, too."""
        hide = context._port.hide
        record.msg, record.args = hide(record.getMessage()), None
        if record.exc_info:
            record.exc_text = hide((self.formatter or logging.Formatter()).formatException(record.exc_info))
            record.exc_info = None
        if record.stack_info:
            record.stack_info = hide(record.stack_info)

    def _is_alone(self) -> bool:
        return all(isinstance(handler, LogCapture) for handler in logging.getLogger().handlers)


def _whose(context: Context) -> dict[str, str | int]:
    fields: dict[str, str | int] = {
        "execution": str(context.execution_id),
        "job": context.job,
        "attempt": context.attempt,
    }
    trace = trace_id_of(context.trace)
    return fields if trace is None else fields | {"trace": trace}


def install() -> None:
    """Begin to capture; INFO and above unless the application has set its own level. A second call does nothing."""
    root = logging.getLogger()
    if any(isinstance(handler, LogCapture) for handler in root.handlers):
        return
    capture = LogCapture(root.level)
    capture.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    if root.level == logging.WARNING and not root.handlers:
        root.setLevel(logging.INFO)
    root.addHandler(capture)
    root.handlers.insert(0, root.handlers.pop())  # before other handlers


def uninstall() -> None:
    """Stop the capture."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogCapture)]:
        root.removeHandler(handler)
        root.setLevel(handler.former)
