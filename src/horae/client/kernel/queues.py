"""`client.queues`: queues, and holds, during which no execution of a queue starts."""

from datetime import datetime
from typing import Any, Unpack
from urllib.parse import quote

from horae.client.encode import definition, given, instant, span
from horae.client.options import QueueFields
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.errors import Conflict, NotFound
from horae.model.executions.job_exceptions import Span

LOOK = 0.5  # seconds between checks of a queue


class HoldInfo(ApiDocument, frozen=True, kw_only=True):
    """A hold: no execution of `queue` starts, or of any queue if it is None. `raw` has its start as `from`."""

    hold_id: str
    queue: str | None = None
    calendar: str | None = None
    state: str
    reason: str = ""
    until: datetime | None = None
    drain: bool = False
    running: int = 0
    created_by: str | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None

    @property
    def id(self) -> str:
        return self.hold_id


class QueuesResource(Resource):
    """Queues by name; None means all queues."""

    async def set(self, name: str, **fields: Unpack[QueueFields]) -> ApiDocument:
        """Define a queue, or change its definition; None resets a field to its default."""
        body = definition(fields)
        try:
            return ApiDocument.of(await self._caller.edit("PATCH", path_of("queues", name), body, None))
        except NotFound:
            return ApiDocument.of(await self._caller.edit("PUT", path_of("queues", name), body, None))

    async def purge(self, name: str) -> ApiDocument:
        """Cancel all executions of a queue that have not started; `raw` has their number as `cancelled`."""
        return ApiDocument.of(await self._caller.post(f"{path_of('queues', name, 'purge')}?confirm={quote(name)}", {}))

    async def emptied(self, name: str) -> ApiDocument:
        """Wait until no execution of a queue is queued or running."""
        while True:
            queue = await self.get(name)
            if not queue.raw["queued"] and not queue.raw["running"]:
                return queue
            await self._caller.env.clock.sleep(LOOK)

    async def hold(
        self,
        name: str | None,
        length: Span | None = None,
        *,
        until: datetime | str | None = None,
        since: datetime | str | None = None,
        reason: str = "",
        drain: bool = False,
    ) -> HoldInfo:
        """Hold a queue: start none of its executions for a time ("30m", seconds or a timedelta) or `until` an instant.

        When this returns, no server starts any of them; running executions continue. The hold begins at `since`, or at
        once. A further hold with the same reason changes the first one instead. `drain` shows other users that
        somebody waits until no execution runs.
        """
        fields = {
            "for": span(length),
            "until": instant(until),
            "from": instant(since),
            "reason": reason,
            "drain": drain,
        }
        body = {field: value for field, value in fields.items() if value not in (None, "", False)}
        return HoldInfo.of(await self._caller.post(_hold_of(name), body))

    async def release(self, name: str | None, *, reason: str | None = None) -> ApiDocument:
        """End the holds of a queue, or only those with this reason; pauses and windows remain.

        `raw` has the holds that ended (`released`), and the holds that remain (`remaining`).
        """
        return ApiDocument.of(await self._caller.delete(_hold_of(name), {"reason": reason}))

    async def holds(self, name: str | None = None, *, ended: bool = False) -> ResultPage[HoldInfo]:
        """List holds and windows, newest first; with `ended`, also those that ended in the last 30 days."""
        query = {"queue": name, "ended": ended or None}
        return page_of(HoldInfo, await self._caller.get(path_of("holds"), query))

    async def set_window(self, name: str | None, calendar: str, *, reason: str = "", drain: bool = False) -> HoldInfo:
        """Make a calendar a maintenance window of a queue: while it is open, no execution starts."""
        body = {"reason": reason, "drain": drain}
        return HoldInfo.of(await self._caller.edit("PUT", _window_of(name, calendar), body, None))

    async def remove_window(self, name: str | None, calendar: str) -> None:
        """Remove a maintenance window."""
        await self._caller.delete(_window_of(name, calendar))

    async def drained(self, hold: HoldInfo, on_look: Any = None) -> HoldInfo:
        """Wait until no execution of the held queue is running.

        Call `on_look` with the hold at first, and whenever its number of `running` executions has changed.

        Raises Conflict if the hold ends before that: executions may have started again.
        """
        reported: int | None = None
        while True:
            found = {one.id: one for one in await self.holds(hold.queue, ended=True)}.get(hold.id)
            if found is None or found.state == "ended":
                raise Conflict("The hold ended before all running executions ended.", "Hold longer, and wait again.")
            if on_look is not None and found.running != reported:
                on_look(found)
            reported = found.running
            if found.running == 0 and found.state == "active":
                return found
            await self._caller.env.clock.sleep(LOOK)

    # `python -m tools.sdk` writes the methods below, from the routes of queues (put: set, patch: set,
    # window: set_window).

    async def list(self) -> ResultPage[ApiDocument]:
        """List queues with their lanes, the numbers of queued and running executions, and their present holds."""
        return page_of(ApiDocument, await self._caller.get(path_of("queues")))

    async def get(self, name: str) -> ApiDocument:
        """Read a queue: its policy, its queued and running executions, and its holds."""
        return ApiDocument.of(await self._caller.get(path_of("queues", name)))

    async def pause(self, name: str, *, reason: str | None = None) -> ApiDocument:
        """Pause a queue until it is resumed: after the answer, no server starts an execution of the queue.

        Running executions continue.

        `reason`: The reason; held executions show it.
        """
        return ApiDocument.of(await self._caller.post(path_of("queues", name, "pause"), given(reason=reason)))

    async def resume(self, name: str) -> ApiDocument:
        """Resume a paused or drained queue. Holds with an end, and maintenance windows, remain."""
        return ApiDocument.of(await self._caller.post(path_of("queues", name, "resume")))

    async def drain(self, name: str) -> ApiDocument:
        """Refuse further submissions to a queue, and run its present executions. Triggers of its jobs continue to
        fire.
        """
        return ApiDocument.of(await self._caller.post(path_of("queues", name, "drain")))


def _hold_of(name: str | None) -> str:
    return path_of("holds") if name is None else path_of("queues", name, "hold")


def _window_of(name: str | None, calendar: str) -> str:
    return path_of("windows", calendar) if name is None else path_of("queues", name, "windows", calendar)
