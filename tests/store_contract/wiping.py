"""A session that empties a PostgreSQL store between tests: its plan is prepared once, which saves time."""

import asyncio
import threading

import asyncpg

from tests.store_contract.world import emptying

FUNCTION = """
CREATE FUNCTION pg_temp.wipe() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$
"""


class Wiper:
    """A separate session on a separate thread, because each test has its own event loop."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection = self._do(self._open(url))

    def wipe(self) -> None:
        """Empty every table except for the first rows."""
        self._do(self._connection.execute("SELECT pg_temp.wipe()"))

    def close(self) -> None:
        self._do(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, url: str) -> asyncpg.Connection:
        connection = await asyncpg.connect(url)
        await connection.execute(FUNCTION.format(" ".join(f"{statement};" for statement in emptying())))
        return connection

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
