"""Transactions around code of the engine: all store operations of the code take effect, or none.

The code runs inside one script. The statements of each store operation that it awaits become statements of that script.
So the code sees its own writes, and all of them are rolled back when it raises.
"""

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast

from horae.env import Env
from horae.errors import Busy
from horae.store.contract import Store
from horae.store.driver import Driver
from horae.store.script import Op, Rows, Script, ScriptFactory

T = TypeVar("T")


class NestedDriver:
    """A driver that runs each script as a part of one larger script."""

    def __init__(self, driver: Driver) -> None:
        self.dialect = driver.dialect
        self.broken = False

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        """Run a script as a part of the transaction; if it fails, the whole transaction must be rolled back."""
        try:
            return await _Part(make())
        except BaseException:
            self.broken = True
            raise

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        return await _Part(make())


class _Part(Generic[T]):
    def __init__(self, script: Script[T]) -> None:
        self._script = script

    def __await__(self) -> Generator[Op, Rows, T]:
        return (yield from self._script)


def in_one_transaction(outer: Store, env: Env, work: Callable[[Store], Coroutine[Any, Any, T]]) -> ScriptFactory[T]:
    """Return a script that runs `work` with a store whose operations become parts of the script.

    `work` may await only operations of this store. It sees the context variables of the caller. The script raises Busy
    if a write failed and `work` returned nevertheless, because a part cannot be rolled back alone.
    """
    context = copy_context()

    def script() -> Script[T]:
        driver = NestedDriver(outer.driver)
        running = context.run(work, Store(cast(Driver, driver), env))
        rows: Rows | None = None
        try:
            while True:
                rows = yield context.run(running.send, rows)
        except StopIteration as end:
            if driver.broken:
                raise Busy("Another request changed the same rows at the same time.") from None
            result: T = end.value
            return result
        finally:
            running.close()

    return script
