"""Listeners: triggers that something outside fires, as they stand while a batch of events is decided at them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.events.decide import Listening, Verdict, decide_event
from horae.model.events.params import fill_params
from horae.model.execution import Extra
from horae.model.ids import index_of, parcel_of
from horae.model.parcel import Parcel
from horae.model.template import TemplateError
from horae.model.trigger.external import Event, Watch
from horae.store.moves.fire import LIVE
from horae.store.moves.parcels import put_parcels
from horae.store.moves.placing import place
from horae.store.moves.shelves import Columns
from horae.store.moves.submission import NewExecution
from horae.store.moves.targets import Lead, Target, execution_of, read_target
from horae.store.moves.triggers import COUNT, Timer, read_timer, why
from horae.store.script import ForEach, Insert, Row, Script, Statement

EVENT_FIRES: Columns = (
    ("trigger_id", "uuid"), ("event", "uuid"), ("job", "uuid"), ("at", "bigint"), ("disposition", "text"),
    ("cause", "text"), ("execution", "uuid"),
)  # fmt: skip
# Held until the commit: an edit or a deletion waits for it, or has come first and is seen by the next statement.
HOLD_JOBS = Statement("hold_jobs", "SELECT j.id FROM given JOIN jobs j ON j.id = given.job FOR KEY SHARE OF j")
HOLD_TIMERS = Statement(
    "hold_timers",
    "SELECT t.trigger_id, t.fired, t.last_execution FROM given JOIN timers t ON t.trigger_id = given.trigger_id"
    " FOR UPDATE OF t",
)
COUNT_FIRES = Statement(
    "count_event_fires",
    "UPDATE timers SET fired = timers.fired + given.fired, last_execution = given.last_execution FROM given"
    " WHERE timers.trigger_id = given.trigger_id",
)
MOST_TOLD = 500  # characters of why

Check = Callable[[Target, bytes], str | None]  # why an item cannot be the params of a job's execution


class Listener(Struct, kw_only=True):
    """A trigger that hears an event, as it stands while a batch of them is decided."""

    timer: Timer
    target: Target
    fired: int
    busy: bool = False
    fires: int = 0  # of this batch
    last: UUID | None = None

    @property
    def counts(self) -> bool:
        """Whether what it fires depends on what it fired before."""
        return self.timer.rules.overlap == "skip" or self.timer.rules.max_fires is not None

    def listening(self) -> Listening:
        trigger, paused = self.timer.trigger, ""
        if self.target.state == "paused" or self.timer.state == "paused":
            paused = "job" if self.target.state == "paused" else "trigger"
        return Listening(
            rules=self.timer.rules, filter=trigger.filter if isinstance(trigger, Event | Watch) else None,
            paused=paused, fired=self.fired + self.fires, busy=self.busy,
        )  # fmt: skip


class Decided(Struct, frozen=True):
    """An event at a listener."""

    event: UUID
    listener: Listener
    verdict: Verdict
    wanted: NewExecution | None = None


def read_listener(row: Row) -> Listener:
    """A listener from the columns of its timer, and of its target after them."""
    timer = read_timer(row)
    return Listener(timer=timer, target=read_target(row, COUNT), fired=timer.fired)


def hold_jobs(jobs: Iterable[UUID]) -> Script[None]:
    """Keep jobs as they are until the commit."""
    given = [(job,) for job in sorted(jobs)]
    if given:
        yield ForEach(HOLD_JOBS, (("job", "uuid"),), given)


def hold_counts(listeners: Sequence[Listener]) -> Script[None]:
    """Lock the timers of those that count, and read what they count under the lock."""
    if not listeners:
        return
    given = [(one.timer.id,) for one in sorted(listeners, key=lambda one: one.timer.id)]
    rows = yield ForEach(HOLD_TIMERS, (("trigger_id", "uuid"),), given)
    counts = {row[0]: (row[1], row[2]) for row in rows}
    last = {id for _, id in counts.values() if id is not None}
    columns: Columns = (("execution", "uuid"), ("parcel", "uuid"), ("item", "int"))
    live = yield ForEach(LIVE, columns, [(id, parcel_of(id), index_of(id)) for id in sorted(last)])
    alive = {row[0] for row in live}
    for one in listeners:
        one.fired, one.last = counts[one.timer.id]
        one.busy = one.last in alive


def decide_at(
    listener: Listener, id: UUID, told: str, scope: dict[str, Any], lead: Lead, check: Check, now: Instant
) -> Decided:
    """Decide one event at one listener, and make its execution; one that cannot be decided keeps nobody else back."""
    try:
        verdict = decide_event(listener.listening(), scope, now)
    except Exception as error:
        return Decided(id, listener, Verdict("skipped-trouble", why(error)))
    if verdict.disposition != "fired":
        return Decided(id, listener, verdict)
    try:
        item = fill_params(listener.timer.params, scope)
    except TemplateError as error:
        return Decided(id, listener, Verdict("skipped-params", str(error)[:MOST_TOLD]))
    refusal = check(listener.target, item)
    if refusal is not None:
        return Decided(id, listener, Verdict("skipped-params", refusal[:MOST_TOLD]))
    listener.fires += 1
    listener.busy = True
    extra = Extra(origin="event", trigger=listener.timer.id, event=told)
    return Decided(id, listener, verdict, execution_of(listener.target, extra, lead, item=item))


class Written(Struct, frozen=True):
    """What was written of decided events."""

    executions: dict[tuple[UUID, UUID], UUID]  # (trigger, event) -> execution
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None


def write_fires(decided: Sequence[Decided], new_id: Callable[[], UUID], now: Instant) -> Script[Written]:
    """Executions of what fired, and the ledger of all that was decided."""
    fired = [(d, d.wanted) for d in decided if d.wanted is not None]
    placed, parcels = place([wanted for _, wanted in fired], {}, new_id, now)
    lanes: dict[int, int] = {}
    wake_at: Instant | None = None
    if parcels:
        lanes, wake_at = yield from put_parcels(parcels, now)
    executions: dict[tuple[UUID, UUID], UUID] = {}
    for (d, _), receipts in zip(fired, placed, strict=True):
        executions[d.listener.timer.id, d.event] = d.listener.last = receipts[0].execution_id
    seen: Counter[UUID] = Counter()
    rows = []
    for d in decided:
        id = d.listener.timer.id
        at = now + seen[id]  # a microsecond apart, so that a list of fires can be read in parts
        seen[id] += 1
        verdict = d.verdict
        execution = executions.get((id, d.event))
        rows.append((id, d.event, d.listener.target.job, at, verdict.disposition, verdict.cause, execution))
    if rows:
        yield Insert("event_fires", EVENT_FIRES, rows)
    counting = {d.listener.timer.id: d.listener for d, _ in fired if d.listener.counts}
    columns: Columns = (("trigger_id", "uuid"), ("fired", "int"), ("last_execution", "uuid"))
    if counting:
        yield ForEach(COUNT_FIRES, columns, [(id, one.fires, one.last) for id, one in sorted(counting.items())])
    return Written(executions, [parcel for parcel, _ in parcels], lanes, wake_at)
