"""Alembic on PostgreSQL, through asyncpg, with every other server kept out by an advisory lock."""

import asyncpg

from horae.store import migrations
from horae.store.postgres.faults import BROKEN, reraise

_LOCK = 0x486F_7261_6500  # "Horae", the lock of whoever migrates


async def upgrade(url: str) -> None:
    """Bring the tables to HEAD, all or nothing; a server that comes second finds the work done."""
    try:
        connection = await asyncpg.connect(url, timeout=5)
    except BROKEN as error:
        reraise(error)
    try:
        await connection.execute(f"SELECT pg_advisory_lock({_LOCK})")
        await _upgrade(url)
    finally:
        await connection.close()


async def _upgrade(url: str) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url, timeout=5), poolclass=NullPool
    )
    async with engine.connect() as connection:
        await connection.run_sync(migrations.upgrade)
        await connection.commit()
    await engine.dispose()
