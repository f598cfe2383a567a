"""Counts jobs that ran, over processes and threads, for under a microsecond each: the length of a file in memory."""

import os

_path = os.environ["PEERS_TALLY"]
_file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def tick() -> None:
    """One more has run."""
    os.write(_file, b".")


def count() -> int:
    """How many have run."""
    return os.stat(_path).st_size
