"""Services: recurring activities of a server, each with a method `step()`. Only the runner loops and waits."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from horae.env import Clock, Env
from horae.errors import StoreUnavailable

Wait = float  # seconds until the next step is due; 0 if it is due at once
log = structlog.get_logger("horae.engine")


class Service(Protocol):
    """A recurring activity of a server."""

    name: str
    alarm: "Alarm"

    async def step(self) -> Wait:
        """Do one bounded piece of work and return the seconds until the next step."""
        ...


class Alarm:
    """Wakes a waiting service before its time."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, clock: Clock, seconds: float) -> None:
        """Wait until the alarm rings or the time is over."""
        if seconds <= 0:
            await clock.sleep(0)
        elif not self._event.is_set():
            sleeper = asyncio.ensure_future(clock.sleep(seconds))
            ringer = asyncio.ensure_future(self._event.wait())
            try:
                await asyncio.wait({sleeper, ringer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeper.cancel()
                ringer.cancel()
        self._event.clear()


class Runner:
    """Runs services until it is stopped. A failing step is logged and repeated; other services go on."""

    def __init__(self, env: Env, on_store: Callable[[bool], None]) -> None:
        self._env = env
        self._on_store = on_store
        self._cut_off: set[str] = set()  # services whose last step did not reach the store
        self._since = 0.0  # when the first of them failed
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, service: Service) -> None:
        self._tasks.append(asyncio.create_task(self._loop(service), name=f"horae-{service.name}"))

    async def stop(self) -> None:
        """Cancel all services, even during a step, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _loop(self, service: Service) -> None:
        while True:
            wait = await self._step(service)
            await service.alarm.wait(self._env.clock, wait)

    async def _step(self, service: Service) -> Wait:
        try:
            wait = await service.step()
        except StoreUnavailable as error:
            self._lost(service, error)
            return self._env.rng.uniform(0.3, 0.7)
        except Exception:
            log.exception("step failed", service=service.name)
            if service.name in self._cut_off:  # it misses something else now
                self._went_well(service)
            return 1.0
        self._went_well(service)
        return wait

    def _lost(self, service: Service, error: StoreUnavailable) -> None:
        """Log the outage once, because it may be long and every service notices it."""
        if not self._cut_off:
            self._since = self._env.clock.monotonic()
            log.warning("store unavailable", error=error.detail)
        self._cut_off.add(service.name)
        self._on_store(False)

    def _went_well(self, service: Service) -> None:
        """Log the end of an outage when every service that failed has succeeded again.

        The success of another service does not show that the store is back, because its step may not use the store.
        """
        if service.name in self._cut_off:
            self._cut_off.remove(service.name)
            if not self._cut_off:
                log.info("store is back", seconds=round(self._env.clock.monotonic() - self._since, 1))
        self._on_store(not self._cut_off)
