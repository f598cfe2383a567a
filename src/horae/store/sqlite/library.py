"""Choose the SQLite library: pysqlite3's bundled one where there is a wheel, else Python's own.

Versions before 3.51.3 have a rare corruption bug (WAL reset) with several writers. Horae has one writer, so this is a
precaution. Never use both libraries on one file in one process: import the module from here.
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
