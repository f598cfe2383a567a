"""Records of Python's logging that are made during an execution belong to its log.

What a function prints does so too when it runs in a process of its own; in a thread or on the loop it goes to the
worker's own output, because that is shared by everything the worker runs at once.
"""

import logging

from horae.model.base.trace import trace_id_of
from horae.worker.code.context import Context, current_or_none

WHOSE = "horae"  # what a record says of the execution that made it, for handlers that write it elsewhere


class LogCapture(logging.Handler):
    """Sends records to the execution that made them; what is logged outside of one goes its usual way."""

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
        """Take secrets out of the record itself: handlers that come after this one write it elsewhere."""
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
    told: dict[str, str | int] = {
        "execution": str(context.execution_id),
        "job": context.job,
        "attempt": context.attempt,
    }
    trace = trace_id_of(context.trace)
    return told if trace is None else told | {"trace": trace}


def install() -> None:
    """Begin to capture; INFO and above unless the application has set a level of its own. Doing it again is nothing."""
    root = logging.getLogger()
    if any(isinstance(handler, LogCapture) for handler in root.handlers):
        return
    capture = LogCapture(root.level)
    capture.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    if root.level == logging.WARNING and not root.handlers:
        root.setLevel(logging.INFO)
    root.addHandler(capture)
    root.handlers.insert(0, root.handlers.pop())  # before those that write elsewhere


def uninstall() -> None:
    """Stop to capture."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogCapture)]:
        root.removeHandler(handler)
        root.setLevel(handler.former)
