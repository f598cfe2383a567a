"""How a server is connected to PostgreSQL; a SQLite store has no use for it."""

from msgspec import Struct

UPKEEP = 1  # a connection that comes and goes: partitions, migrations, backups, and the pulse when nobody answers


class Connections(Struct, frozen=True, kw_only=True):
    """How many connections one process keeps at most, and where PostgreSQL itself is when a pooler stands before it."""

    hot: int = 4  # for the moves: submit, claim, report, and for reading one execution or job
    cold: int = 4  # for everything else
    direct: str = ""  # not empty: the store's URL leads to a pooler that gives every transaction another connection

    @property
    def most(self) -> int:
        """What one process takes at most, the one that listens included."""
        return self.hot + self.cold + 1 + UPKEEP


DEFAULT = Connections()
