"""Run Alembic on PostgreSQL through asyncpg, under an advisory lock that excludes all other servers."""

from horae.store.migrations import revisions as migrations
from horae.store.postgres.faults import translated
from horae.store.postgres.pool import Connect

_LOCK = 0x486F_7261_6500  # the number of the advisory lock: "Horae" as bytes


async def upgrade(connect: Connect) -> None:
    """Migrate the tables to HEAD in one transaction.

    If several servers migrate at once, the first to get the lock does it, and the others find nothing to do.
    """
    with translated():
        connection = await connect()
    try:
        await connection.execute(f"SELECT pg_advisory_lock({_LOCK})")
        await _upgrade(connect)
    finally:
        await connection.close()


async def _upgrade(connect: Connect) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(migrations.upgrade)
        await connection.commit()
    await engine.dispose()
