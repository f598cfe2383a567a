"""SQLite compiles each daily statement once, because compiling may cost more than reading the rows."""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from horae.env import Env
from horae.store.sqlite.library import sqlite3
from horae.store.sqlite.memory import MemoryDriver
from tests.store_contract.life import recorded
from tests.store_contract.world import World

T = TypeVar("T")


class Compiling:
    """A connection that records the texts that are compiled again, by the calls of its authorizer."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._asked = 0
        self._seen: set[str] = set()
        self.again: Counter[str] = Counter()
        raw.set_authorizer(self._authorize)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, text: str, *params: Any) -> Any:
        return self._noted(text, lambda: self._raw.execute(text, *params))

    def executemany(self, text: str, rows: Any) -> Any:
        return self._noted(text, lambda: self._raw.executemany(text, rows))

    def _authorize(self, *_: Any) -> int:
        self._asked += 1
        return int(sqlite3.SQLITE_OK)

    def _noted(self, text: str, run: Callable[[], T]) -> T:
        self._asked = 0
        result = run()
        if self._asked and text in self._seen:
            self.again[text] += 1
        self._seen.add(text)
        return result


async def test_sqlite_compiles_each_statement_once(memory_driver: MemoryDriver, env: Env):
    connection = memory_driver._connection
    connection.raw = compiling = Compiling(connection.raw)

    await recorded(World(memory_driver, env))

    assert compiling.again == {}
