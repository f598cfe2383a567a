"""Connections of one process to PostgreSQL; a SQLite store ignores them."""

from msgspec import Struct

# one more connection comes and goes: for partitions, migrations, backups, and the pulse when the database is silent
UPKEEP = 1


class Connections(Struct, frozen=True, kw_only=True):
    """How many connections one process keeps, and PostgreSQL's own URL behind a pooler."""

    hot: int = 4  # for hot operations: submit, claim, report, and reading one execution or job
    cold: int = 4  # for everything else
    # PostgreSQL's own URL, when the store's URL leads to a pooler that switches connections between transactions
    direct: str = ""

    @property
    def most(self) -> int:
        """Return the most connections that one process opens, including the one that listens."""
        return self.hot + self.cold + 1 + UPKEEP


DEFAULT = Connections()
