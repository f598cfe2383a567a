"""A count of jobs over processes and threads, for under a microsecond each: the length of a file in memory."""

import os

_path = os.environ["PEERS_TALLY"]
_file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def tick() -> None:
    """Count one more job."""
    os.write(_file, b".")


def count() -> int:
    """Return the number of jobs that ran."""
    return os.stat(_path).st_size
