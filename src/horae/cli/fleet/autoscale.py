"""`horae workers autoscale`: start and drain workers according to the demand of a queue."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from horae.cli.remote import Api
from horae.env import SECOND
from horae.errors import BadInput, HoraeError
from horae.model.fleet.autoscale import Scaler, ScalingBounds

PATIENCE = 60.0  # seconds for a command that changes the number of workers
BOOT = 300.0  # seconds in which workers elsewhere start or drain after such a command


class WorkerPool(Protocol):
    """A set of workers that can grow and shrink."""

    async def count(self, seen: int) -> tuple[int, int]:
        """Return the number of workers in this set, and of others; `seen` is the number that the server sees."""
        ...

    async def resize(self, now: int, to: int) -> None:
        """Start or drain workers, to change their number from `now` to `to`."""
        ...

    async def close(self) -> None:
        """Drain the workers that were started here, and wait until they have ended."""
        ...


class ProcessPool:
    """Workers on this machine, each started with `command` and drained with SIGTERM. Workers that exit are replaced."""

    def __init__(self, command: Sequence[str], say: Callable[[str], None]) -> None:
        self._command, self._say = command, say
        self._running: list[asyncio.subprocess.Process] = []
        self._draining: list[asyncio.subprocess.Process] = []

    async def count(self, seen: int) -> tuple[int, int]:
        for process in self._running:
            if process.returncode is not None:
                self._say(f"A worker exited with {process.returncode}; see its output above.")
        self._running = [process for process in self._running if process.returncode is None]
        self._draining = [process for process in self._draining if process.returncode is None]
        return len(self._running), max(0, seen - len(self._running))

    async def resize(self, now: int, to: int) -> None:
        for _ in range(to - now):
            self._running.append(await self._start())
        for _ in range(now - to):  # the newest first: the oldest have the warmest caches
            process = self._running.pop()
            _drain(process)
            self._draining.append(process)

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(*self._command, start_new_session=True)
        except OSError as error:
            remedy = "Write the command as you would start it by hand: -- horae worker --queue reports"
            raise BadInput(f"{self._command[0]} cannot be started: {error.strerror}.", remedy) from None

    async def close(self) -> None:
        for process in self._running:
            _drain(process)
        await asyncio.gather(*(process.wait() for process in (*self._running, *self._draining)))


def _drain(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)


class CommandPool:
    """Workers elsewhere, added by the shell line `up` and removed by the shell line `down`.

    After a line has ended, the requested number counts as the present one until the server sees it, at most for BOOT
    seconds: machines take time to start, and would be requested again.

    Both lines get the environment variables HORAE_WORKERS (the present number), HORAE_DESIRED (the desired number) and
    HORAE_CHANGE (the difference).
    """

    def __init__(self, up: str, down: str, monotonic: Callable[[], float]) -> None:
        self._up, self._down, self._monotonic = up, down, monotonic
        self._requested: int | None = None
        self._grows, self._until = False, 0.0

    async def count(self, seen: int) -> tuple[int, int]:
        if self._requested is not None:
            is_reached = seen >= self._requested if self._grows else seen <= self._requested
            if is_reached or self._monotonic() >= self._until:
                self._requested = None
        return seen if self._requested is None else self._requested, 0

    async def resize(self, now: int, to: int) -> None:
        line = self._up if to > now else self._down
        env = {**os.environ, "HORAE_WORKERS": str(now), "HORAE_DESIRED": str(to), "HORAE_CHANGE": str(abs(to - now))}
        process = await asyncio.create_subprocess_shell(line, env=env, start_new_session=True)
        try:
            code = await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            remedy = "Let the command only request workers, without waiting for them."
            raise HoraeError(f"{line!r} took longer than a minute.", remedy) from None
        if code:
            raise HoraeError(f"{line!r} ended with {code}.", "The command is tried again at the next check.")
        self._requested, self._grows, self._until = to, to > now, self._monotonic() + BOOT

    async def close(self) -> None:
        """Do nothing: workers elsewhere continue."""


class Autoscaler:
    """A loop that checks a queue regularly and adapts the number of workers."""

    def __init__(self, api: Api, fleet: WorkerPool, options: dict[str, Any]) -> None:
        self._api, self._fleet = api, fleet
        self._queue, self._wait, self._slots = options["queue"], options["target_wait"], options["slots"]
        self._dry = options["dry_run"]
        bounds = ScalingBounds(
            least=options["min"], most=options["max"], step=options["step"], cooldown=options["cooldown"] / SECOND
        )
        self._scaler = Scaler(bounds)

    async def check(self) -> None:
        """Check the queue once, and change the number of workers at most once."""
        signals = await self._api.client.workers.signals(self._queue, target_wait=self._wait, slots=self._slots)
        now, others = await self._fleet.count(signals.workers)
        to = self._scaler.size(self._api.env.clock.monotonic(), now, signals.desired_workers - others)
        self._report(signals, now, others, to)
        if to != now and not self._dry:
            await self._fleet.resize(now, to)

    def _report(self, signals: Any, now: int, others: int, to: int) -> None:
        if not self._api.out.is_for_people:
            return self._api.out.document({**signals.raw, "current": now, "next": to, "dryRun": self._dry})
        change = "unchanged" if to == now else f"{'would become' if self._dry else 'becomes'} {to}"
        self._api.out.say(
            f"{signals.queue}: {signals.backlog} queued (oldest {signals.oldest_age:.1f}s), {signals.running} running,"
            f" {signals.arrival_rate:.1f}/s in, {signals.service_rate:.1f}/s out; {now} workers"
            f"{f' and {others} elsewhere' if others else ''}, wants {signals.desired_workers}: {change}"
        )
        return None

    async def run(self, every: float, stop: asyncio.Event, *, once: bool) -> None:
        """Check the queue until stopped. After a failed request or command, the next check tries again."""
        while not stop.is_set():
            try:
                await self.check()
            except BadInput:
                raise
            except HoraeError as error:
                if once:
                    raise
                self._api.out.say(f"{error.detail} {error.remedy}")
            if once:
                return
            await self._pause(every, stop)

    async def _pause(self, seconds: float, stop: asyncio.Event) -> None:
        ways = [asyncio.ensure_future(self._api.env.clock.sleep(seconds)), asyncio.ensure_future(stop.wait())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()


async def autoscale(api: Api, command: Sequence[str], options: dict[str, Any]) -> None:
    """Validate the options, and follow the queue until SIGTERM or Ctrl-C."""
    fleet = _fleet(command, options, api)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    scaler = Autoscaler(api, fleet, options)
    try:
        await scaler.run(options["every"] / SECOND, stop, once=options["once"])
    finally:
        await fleet.close()


def _fleet(command: Sequence[str], options: dict[str, Any], api: Api) -> WorkerPool:
    if options["min"] > options["max"]:
        raise BadInput(f"--min {options['min']} is more than --max {options['max']}.", "Lower one or raise the other.")
    if command and options["once"] and not options["dry_run"]:
        detail = "With --once, the workers that COMMAND starts would be drained at once."
        raise BadInput(detail, "Remove --once, or give --up and --down instead of COMMAND.")
    given = bool(command), bool(options["up"]), bool(options["down"])
    if given == (True, False, False):
        return ProcessPool(command, api.out.say)
    if given == (False, True, True) or (given == (False, False, False) and options["dry_run"]):
        return CommandPool(options["up"], options["down"], api.env.clock.monotonic)
    remedy = "Give a worker's command after --, or both --up and --down, or only --dry-run."
    raise BadInput("There must be exactly one way to start and drain workers.", remedy)
