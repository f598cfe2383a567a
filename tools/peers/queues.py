"""The queues that are measured. Timers and workflows would need another kind of measurement."""

from collections.abc import Sequence
from importlib import import_module

from tools.peers.peer import Peer

QUEUES = ("celery", "dramatiq", "taskiq", "huey", "rq", "procrastinate", "pgqueuer", "oban")


def queues(only: Sequence[str], without: Sequence[str]) -> list[Peer]:
    """Return the selected peers, in the order of the list."""
    chosen = [name for name in QUEUES if (not only or name in only) and name not in without]
    return [peer_of(name) for name in chosen]


def peer_of(name: str) -> Peer:
    peer: Peer = import_module(f"tools.peers.{name}").PEER
    return peer
