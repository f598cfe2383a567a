"""Helpers for tests: an inline runner of jobs, and a whole server in a thread, both on virtual clocks.

Only users, and Horae's own tests and benchmarks, import this package.
"""

from typing import TYPE_CHECKING, Any

from horae.testing.failure_policy import TimedOut
from horae.testing.inline import Crash, Inline, Waits
from horae.testing.workflows import WorkflowFailed

if TYPE_CHECKING:
    from horae.testing.serving import server

__all__ = ("Crash", "Inline", "TimedOut", "Waits", "WorkflowFailed", "server")


def __getattr__(name: str) -> Any:
    """Import `server` only at its first use, because that imports the whole engine."""
    if name != "server":
        raise AttributeError(f"module 'horae.testing' has no attribute {name!r}")
    from horae.testing.serving import server

    return server
