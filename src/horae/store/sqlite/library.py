"""Which SQLite library runs: pysqlite3's bundled one where there is a wheel, else the one Python came with.

Versions before 3.51.3 have a rare WAL-reset corruption bug with several writers; Horae has one writer, so it is a
matter of caution. Never mix the two in one process on one file: import the module from here.
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
