"""Helpers for tests: a virtual clock, an inline runner, a whole server in a thread, a private PostgreSQL.

Users import it, and so do Horae's tests and benchmarks; no other layer does.
"""

from typing import TYPE_CHECKING, Any

from horae.testing.failure_policy import TimedOut
from horae.testing.inline import Crash, Inline, Waits
from horae.testing.workflows import WorkflowFailed

if TYPE_CHECKING:
    from horae.testing.serving import server

__all__ = ("Crash", "Inline", "TimedOut", "Waits", "WorkflowFailed", "server")


def __getattr__(name: str) -> Any:
    """Import the server at its first use: it imports the whole engine."""
    if name != "server":
        raise AttributeError(f"module 'horae.testing' has no attribute {name!r}")
    from horae.testing.serving import server

    return server
