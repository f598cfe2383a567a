"""Captures Python's log records that are made during an execution, and adds them to the execution's log.

Text that a function prints is added to the log, too, if the function runs in a child process. Text that is printed in a
thread or on the loop goes to the worker's own output, because all executions in the worker's process share this output.
"""

import logging

from horae.model.base.trace import trace_id_of
from horae.worker.code.context import Context, current_or_none

RECORD_ATTRIBUTE = "horae"  # added to a log record made during an execution; tells other handlers the execution


class LogCapture(logging.Handler):
    """Adds a record to the log of the execution that made it; records made outside of executions are handled as usual.

    `root_level` is the level of the root logger before the capture.
    """

    def __init__(self, root_level: int) -> None:
        super().__init__()
        self.root_level = root_level

    def emit(self, record: logging.LogRecord) -> None:
        context = current_or_none()
        if context is not None:
            if context._secrets:
                self._cover(record, context)
            context._port.log("log", self.format(record))
            setattr(record, RECORD_ATTRIBUTE, _identity(context))
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


def _identity(context: Context) -> dict[str, str | int]:
    fields: dict[str, str | int] = {
        "execution": str(context.execution_id),
        "job": context.job,
        "attempt": context.attempt,
    }
    trace = trace_id_of(context.trace)
    return fields if trace is None else fields | {"trace": trace}


def install() -> None:
    """Begin to capture records of level INFO and above, or of the level that the application has set.

    A second call does nothing.
    """
    root = logging.getLogger()
    if any(isinstance(handler, LogCapture) for handler in root.handlers):
        return
    capture = LogCapture(root.level)
    capture.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    if root.level == logging.WARNING and not root.handlers:
        root.setLevel(logging.INFO)
    root.addHandler(capture)
    root.handlers.insert(0, root.handlers.pop())  # before other handlers, so that these get masked records


def uninstall() -> None:
    """Stop the capture."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogCapture)]:
        root.removeHandler(handler)
        root.setLevel(handler.root_level)
