"""The common part of the file driver and the memory driver. No other process writes to their stores or gets hints."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from horae.env import Env, Instant
from horae.model.base.topic import Topic
from horae.model.tenancy.namespace import Longer
from horae.store.driver import Before, Read, alone
from horae.store.expiry import expiry, fire_expiry
from horae.store.script import Provided, ScriptFactory

T = TypeVar("T")


class OwnDriver(ABC):
    """A driver for a store of this process alone; subclasses add `write`, `read` and `copy_file`."""

    dialect = "sqlite"
    is_shared = False
    path: Path | None = None

    def __init__(self, env: Env) -> None:
        self.before: Before | None = None
        self.retries = 0
        self.epoch_met: Topic[None] = Topic("epoch_met")
        self._env = env
        self._listeners: list[Callable[[str], None]] = []

    @abstractmethod
    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T: ...

    @abstractmethod
    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T: ...

    async def change(self, op: Provided) -> bool:
        return await self.write(alone(op))

    async def write_between(self, make: ScriptFactory[T]) -> T:
        return await self.write(make)

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        return await self.write(make, hot=False)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Read]:
        """Yield the usual `read`, whose calls do not share a snapshot.

        The caller makes sure that this process writes nothing meanwhile; no other process can.
        """
        yield self.read

    async def notify(self, payload: str) -> None:
        for callback in self._listeners:
            callback(payload)

    async def listen(self, callback: Callable[[str], None]) -> None:
        self._listeners.append(callback)

    @abstractmethod
    async def copy_file(self, path: Path) -> None: ...

    def tell_owner(self, owner: str) -> None:  # noqa: B027
        """Do nothing, because no other process can open a store in memory; the file driver overrides this."""

    async def server_time(self) -> Instant:
        return self._env.clock.wall()

    async def ensure_partitions(self, now: Instant) -> None:  # noqa: B027
        """Do nothing: SQLite has no partitions."""

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        return await self.write(expiry.expire(expiry.earliest_cutoff(before, longer), batch), hot=False)

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        return await self.write(fire_expiry.expire_fires(low, before, batch), hot=False)
