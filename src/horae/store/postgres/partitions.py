"""Day partitions."""

from horae.env import Instant
from horae.store.postgres.pool import Pool


async def ensure(pool: Pool, now: Instant) -> None: ...


async def expire(pool: Pool, before: Instant, batch: int) -> int:
    return 0
