"""Choose the SQLite library: the one bundled with pysqlite3 where that is installed, else Python's own.

SQLite before 3.51.3 has a rare bug that can corrupt a file when several connections write (the WAL-reset bug). Horae
has one writer, so a newer library is only a precaution. All modules import `sqlite3` from this one, because two SQLite
libraries in one process must never use the same file.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

NAME: str = sqlite3.__name__.partition(".")[0]
VERSION: str = sqlite3.sqlite_version

__all__ = ["NAME", "VERSION", "sqlite3"]
