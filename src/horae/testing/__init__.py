"""For those who test with Horae: a virtual clock, an inline runner, a private PostgreSQL.

Users and Horae's own tests and benches import this; no other layer does.
"""

from horae.testing.inline import Crash, Inline, Waits

__all__ = ("Crash", "Inline", "Waits")
