"""Statistics per job and minute: one row per server, so that no row is shared."""

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.moves.shelves import Columns
from horae.store.script import Insert, Script

COLUMNS: Columns = (
    ("job", "uuid"), ("minute", "bigint"), ("server", "uuid"), ("success", "int"), ("failed", "int"),
    ("cancelled", "int"), ("skipped", "int"), ("retried", "int"), ("lost", "int"), ("busy_micros", "bigint"),
)  # fmt: skip
_SUMS = ", ".join(f"{name} = job_minutes.{name} + excluded.{name}" for name, _ in COLUMNS[3:])


class Counts(Struct):
    """What happened to one job within one minute."""

    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    busy: int = 0

    def add(self, state: str, count: int, busy: int) -> None:
        setattr(self, state, getattr(self, state) + count)
        self.busy += busy

    def join(self, other: "Counts") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def add(server: UUID, counts: Mapping[tuple[UUID, int], Counts], now: Instant) -> Script[None]:
    """Add to this server's rows."""
    rows = [
        (job, minute, server, c.success, c.failed, c.cancelled, c.skipped, c.retried, c.lost, c.busy)
        for (job, minute), c in sorted(counts.items())
    ]
    yield Insert("job_minutes", COLUMNS, rows, conflict=f"ON CONFLICT (job, minute, server) DO UPDATE SET {_SUMS}")
