"""Holds and maintenance windows: open, release and list.

Once the request that opens a hold is answered, no execution of the held queue starts.
"""

from collections.abc import Callable, Iterable

import structlog
from msgspec import Struct, structs

from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.directory import LocalDirectory
from horae.env import Env, Instant
from horae.errors import NotFound
from horae.model.admission.hold import Hold, check_window, hold_span
from horae.model.admission.hold_view import HoldView, ReleaseView, show_hold
from horae.model.base.duration import parse_duration
from horae.model.base.instant import parse_instant
from horae.model.fields.values import a_text
from horae.model.triggers.calendars.resolve import current_calendar, no_such_calendar
from horae.store.admission import holds as moves
from horae.store.base import locks
from horae.store.contract import Store
from horae.store.script import Script
from horae.store.triggers import calendars

MOST_REASON = 256  # characters
log = structlog.get_logger("horae.engine")


class HoldRequest(Struct, frozen=True, kw_only=True):
    """The body of a request for a hold: its end (`until`) or its `length`, and optionally its start (`since`).

    With `drain`, the user waits until no execution of the queue is running.
    """

    length: str | int | float | None = None
    until: str | None = None
    since: str | None = None
    reason: str = ""
    drain: bool = False


class QueueHolds:
    """Opens, releases and lists holds. The queue None refers to the whole namespace."""

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, watch: HoldWatch, hints: Hints) -> None:
        self._env, self._store, self._directory, self._watch, self._hints = env, store, directory, watch, hints

    async def open(self, namespace: int, queue: str | None, request: HoldRequest, by: str) -> HoldView:
        """Start no execution of a queue for some time. A hold with the same reason that is open changes instead.

        Raises BadInput, NotFound with the nearest names of queues, or Conflict when there are too many holds.
        """
        now = self._env.now()
        begin, end = hold_span(
            now,
            None if request.since is None else parse_instant(request.since, field="from"),
            None if request.until is None else parse_instant(request.until, field="until"),
            None if request.length is None else parse_duration(request.length, field="for"),
        )
        hold = Hold(
            id=self._env.new_id(), namespace=namespace, queue=await self._queue_id(namespace, queue), from_at=begin,
            until_at=end, drain=request.drain, reason=_reason(request.reason), created_at=now, created_by=by,
        )  # fmt: skip
        stored = await self._store.write(lambda: moves.open_hold(hold))
        log.info("hold opened", hold=str(stored.id), queue=queue, reason=stored.reason, by=by)
        return await self._publish_and_view(namespace, stored)

    async def release(self, namespace: int, queue: str | None, reason: str | None, by: str) -> ReleaseView:
        """End a queue's holds, or only those with this reason, but no pauses or windows. Idempotent."""
        queue_id, now = await self._queue_id(namespace, queue), self._env.now()
        released = await self._store.write(lambda: moves.release(namespace, queue_id, reason, by, now))
        for hold in released:
            log.info("hold released", hold=str(hold.id), queue=queue, reason=hold.reason, by=by)
        await self._publish()
        left = [
            hold for hold in self._watch.not_ended if hold.namespace == namespace and hold.queue in (None, queue_id)
        ]
        view = await self._viewer(namespace)
        return ReleaseView(
            released=[view(hold) for hold in released],
            remaining=[view(hold) for hold in left],
            note=_note(queue, released, left, self._env.now()),
        )

    async def pause(self, namespace: int, queue: str | None, reason: str, drain: bool, by: str) -> HoldView:
        """Start no execution of a queue until it is resumed."""
        now = self._env.now()
        hold = Hold(
            id=self._env.new_id(), namespace=namespace, queue=await self._queue_id(namespace, queue), until_at=None,
            drain=drain, reason=_reason(reason), created_at=now, created_by=by,
        )  # fmt: skip
        stored = await self._store.write(lambda: moves.open_hold(hold))
        log.info("queue paused", hold=str(stored.id), queue=queue, reason=stored.reason, by=by)
        return await self._publish_and_view(namespace, stored)

    async def resume(self, namespace: int, queue: str | None, by: str) -> ReleaseView:
        """End the pause of a queue at once on all servers. Idempotent."""
        queue_id, now = await self._queue_id(namespace, queue), self._env.now()
        resumed = await self._store.write(lambda: moves.resume(namespace, queue_id, by, now))
        for hold in resumed:
            log.info("queue resumed", hold=str(hold.id), queue=queue, by=by)
        await self._publish()
        left = [
            hold for hold in self._watch.not_ended if hold.namespace == namespace and hold.queue in (None, queue_id)
        ]
        view = await self._viewer(namespace)
        note = _note(queue, resumed, left, self._env.now()).replace("was not held by hand", "was not paused")
        return ReleaseView(
            released=[view(hold) for hold in resumed], remaining=[view(hold) for hold in left], note=note
        )

    async def put_window(
        self, namespace: int, queue: str | None, calendar: str, *, drain: bool, reason: str, by: str
    ) -> HoldView:
        """Hold a queue whenever a calendar is open, from now on.

        Raises NotFound, or BadInput when the calendar never opens or closes.
        """
        now = self._env.now()
        hold = Hold(
            id=self._env.new_id(), namespace=namespace, queue=await self._queue_id(namespace, queue), calendar=calendar,
            until_at=None, drain=drain, reason=_reason(reason), created_at=now, created_by=by,
        )  # fmt: skip
        stored = await self._store.write(lambda: _attach(hold, now))
        log.info("window attached", hold=str(stored.id), queue=queue, calendar=calendar, by=by)
        return await self._publish_and_view(namespace, stored)

    async def remove_window(self, namespace: int, queue: str | None, calendar: str, by: str) -> None:
        """Remove a maintenance window. Raises NotFound."""
        queue_id, now = await self._queue_id(namespace, queue), self._env.now()
        removed = await self._store.write(lambda: moves.remove_window(namespace, queue_id, calendar, by, now))
        if not removed:
            subject = "The namespace" if queue is None else f'Queue "{queue}"'
            detail = f'{subject} has no maintenance window with the calendar "{calendar[:128]}".'
            raise NotFound(detail, "List them with `horae queues holds` or GET /api/v1/holds.")
        log.info("window removed", hold=str(removed[0].id), queue=queue, calendar=calendar, by=by)
        await self._publish()

    async def list(self, namespace: int, *, queue: str | None = None, ended: bool = False) -> "list_of[HoldView]":
        """Return holds and windows, newest first; with `ended`, also those that ended in the last 30 days."""
        queue_id, now = await self._queue_id(namespace, queue), self._env.now()
        since = now - moves.KEPT if ended else now + moves.KEPT
        found = await self._store.read(lambda: moves.of_namespace(namespace, since))
        view = await self._viewer(namespace)
        return [view(hold) for hold in found if queue_id is None or hold.queue in (None, queue_id)]

    async def _publish_and_view(self, namespace: int, hold: Hold) -> HoldView:
        await self._publish()
        return (await self._viewer(namespace))(hold)

    async def _publish(self) -> None:
        """Update this server at once, and the other servers by a hint.

        Until the hint arrives, the other servers may try to claim from a held queue, but each claim checks the stored
        holds and takes nothing.
        """
        self._hints.send(Hint(holds=True))
        await self._watch.step()

    async def _viewer(self, namespace: int) -> Callable[[Hold], HoldView]:
        running = await self._store.read(lambda: moves.running_by_queue(namespace))
        names = {queue.id: queue.name for queue in self._directory.queues.values()}
        now = self._env.now()
        return lambda hold: show_hold(hold, names, running, now)

    async def _queue_id(self, namespace: int, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._queue_ids(namespace):
            await self._directory.load()
        own = self._queue_ids(namespace)
        if name not in own:
            near = nearest(name, list(own))
            listed = "List queues with `horae queues list` or GET /api/v1/queues."
            remedy = f"Did you mean {in_quotes(near)}?" if near else listed
            raise NotFound(f'No queue named "{name[:128]}".', remedy, queue=name[:128])
        return own[name]

    def _queue_ids(self, namespace: int) -> dict[str, int]:
        return {queue.name: queue.id for queue in self._directory.queues.values() if queue.namespace == namespace}


list_of = list  # inside the class, `list` is its method


def _attach(hold: Hold, now: Instant) -> Script[Hold]:
    """Store a maintenance window that follows a calendar. The calendar cannot be deleted while the window exists."""
    name = hold.calendar or ""
    yield from locks.take(locks.of_calendars(hold.namespace))
    known = yield from calendars.definitions(hold.namespace)
    if name not in known:
        missing = no_such_calendar(name, known)
        raise NotFound(missing.detail, missing.remedy)
    begin, end = check_window(name, current_calendar(name, known), now)
    return (yield from moves.open_hold(structs.replace(hold, from_at=begin, until_at=end)))


def _reason(text: str) -> str:
    return a_text(text, "reason", most=MOST_REASON)


def _note(queue: str | None, released: Iterable[Hold], left: Iterable[Hold], now: Instant) -> str:
    """Return a sentence about the result of a release."""
    subject = "The namespace" if queue is None else f'Queue "{queue}"'
    count = len(list(released))
    done = f"{count} hold{'' if count == 1 else 's'} released." if count else f"{subject} was not held by hand."
    still = [hold for hold in left if hold.state(now) == "active"]
    if not still:
        return done
    names = sorted({_hold_in_words(hold, queue) for hold in still})
    return f"{done} {subject} is still held by {' and '.join(names)}."


def _hold_in_words(hold: Hold, queue: str | None) -> str:
    text = f'the window "{hold.calendar}"' if hold.calendar else f'"{hold.reason}"' if hold.reason else "a hold"
    return f"{text} of the whole namespace" if hold.queue is None and queue is not None else text
