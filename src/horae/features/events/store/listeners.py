"""Listeners: triggers that listen to events, with their state while a batch of events is decided."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.submission import NewExecution, deadline_after
from horae.model.expressions.meter import refuse_over_budget
from horae.model.expressions.template import TemplateError
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger
from horae.model.triggers.events.decide import OVERTAKEN, Listening, Verdict, decide_again, decide_event
from horae.model.triggers.events.filters import fill_params
from horae.store.admission.share_lanes import assign_share_lanes
from horae.store.base.live import live_among
from horae.store.base.shelves import Columns
from horae.store.executions.entering.placing import place
from horae.store.executions.parcels import put_parcels
from horae.store.script import ForEach, Insert, Row, Script, Statement
from horae.store.triggers import calendars, turns
from horae.store.triggers.delays import Delays, delay_of
from horae.store.triggers.dependencies.arrivals import arrive
from horae.store.triggers.dependencies.dependents import lock_around
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.triggers.refusals import ALL_ROOM, Room, Screening, prepare_screening
from horae.store.triggers.targets import Lead, Target, arm_of, execution_of, read_target, with_choices
from horae.store.triggers.triggers import COUNT, Timer, describe_error, read_timer
from horae.store.triggers.turns import Turn, turn_key

EVENT_FIRES: Columns = (
    ("trigger_id", "uuid"), ("event", "uuid"), ("job", "uuid"), ("at", "bigint"), ("disposition", "text"),
    ("cause", "text"), ("execution", "uuid"),
)  # fmt: skip
# The rows of the jobs stay locked until the commit. So an edit or a deletion of a job either waits for the commit, or
# has been committed before and is seen by the next statement.
HOLD_JOBS = Statement("hold_jobs", "SELECT j.id FROM given JOIN jobs j ON j.id = given.job FOR KEY SHARE OF j")
_COUNTS = "SELECT t.trigger_id, t.fired, t.last_execution FROM given JOIN timers t ON t.trigger_id = given.trigger_id"
HOLD_TIMERS = Statement("hold_timers", f"{_COUNTS} FOR UPDATE OF t")
LOOK_AT_TIMERS = Statement("look_at_timers", _COUNTS)
COUNT_FIRES = Statement(
    "count_event_fires",
    "UPDATE timers SET fired = timers.fired + given.fired, last_execution = given.last_execution FROM given"
    " WHERE timers.trigger_id = given.trigger_id",
)
MOST_REASON = 500  # characters of a reason

Check = Callable[[Target, bytes], str | None]  # returns why an item cannot be the params of a job's execution


class EventListener(Struct, kw_only=True):
    """A trigger that listens to an event, with its state while a batch of events is decided."""

    timer: Timer
    target: Target
    fired: int
    calendar: Calendar | None = None
    turn: Turn = Turn()
    fires: int = 0  # the number of its fires in this batch
    last: UUID | None = None  # the last execution

    @property
    def depends_on_fires(self) -> bool:
        """Return whether decisions of this listener depend on its earlier fires."""
        return self.timer.rules.overlap != "allow" or self.timer.rules.max_fires is not None

    @property
    def key(self) -> str | None:
        """The key under which executions of this trigger wait for each other, or None if they do not wait."""
        return turn_key(self.target.job, self.timer.name) if self.timer.rules.overlap in turns.KEYED else None

    @property
    def replaces(self) -> bool:
        """Return whether a new execution replaces a waiting one."""
        return self.timer.rules.overlap in ("queueOne", "cancelOther")

    def listening(self) -> Listening:
        trigger, paused = self.timer.trigger, ""
        if self.target.state == "paused" or self.timer.state == "paused":
            paused = "job" if self.target.state == "paused" else "trigger"
        return Listening(
            rules=self.timer.rules, filter=trigger.filter if isinstance(trigger, EventTrigger | WatchTrigger) else None,
            paused=paused, fired=self.fired + self.fires, busy=self.turn.busy, waiting=self.turn.waiting,
            calendar=self.calendar,
        )  # fmt: skip


class ListenerDecision(Struct, frozen=True):
    """The decision of a listener about an event, with the execution to submit, if it starts one."""

    event: UUID
    listener: EventListener
    verdict: Verdict
    wanted: NewExecution | None = None


def read_listener(row: Row) -> EventListener:
    """Read a listener from a row with the columns of its timer, followed by those of its target."""
    timer = read_timer(row)
    return EventListener(timer=timer, target=read_target(row, COUNT), fired=timer.fired)


def read_choices(listeners: Sequence[EventListener]) -> Script[None]:
    """Add the job versions between which a rollout chooses to the targets of jobs with a rollout."""
    if any(one.target.rolling is not None for one in listeners):
        known = yield from with_choices({one.target.job: one.target for one in listeners})
        for one in listeners:
            one.target = known[one.target.job]


def lock_jobs(jobs: Iterable[UUID]) -> Script[None]:
    """Lock jobs against changes until the commit."""
    given = [(job,) for job in sorted(jobs)]
    if given:
        yield ForEach(HOLD_JOBS, (("job", "uuid"),), given)


def read_calendars(listeners: Sequence[EventListener], now: Instant) -> Script[None]:
    """Add the compiled calendars to the listeners that have some."""
    going = [one for one in listeners if one.timer.rules.calendars]
    if not going:
        return
    known = yield from calendars.compiled(sorted({_calendar_names(one) for one in going}), now)
    for one in going:
        one.calendar = known.get(_calendar_names(one))


def _calendar_names(listener: EventListener) -> calendars.CalendarNames:
    return listener.target.namespace, listener.timer.rules.calendars


def lock_counts(listeners: Sequence[EventListener]) -> Script[None]:
    """Lock the timers of listeners whose decisions depend on earlier fires, and read their counters under the lock."""
    if not listeners:
        return
    yield from _read_counts(HOLD_TIMERS, listeners)
    yield from _take_turns({one.key: one for one in listeners if one.key is not None})


def peek_counts(listeners: Sequence[EventListener]) -> Script[None]:
    """Read the counters of listeners without a lock, for a plan; they may change at any time."""
    if not listeners:
        return
    yield from _read_counts(LOOK_AT_TIMERS, listeners)
    keyed = {one.key: one for one in listeners if one.key is not None}
    for key, turn in (yield from turns.read_turns(keyed, hold=False)).items():
        keyed[key].turn = keyed[key].turn if turn.is_free else turn


def _read_counts(ask: Statement, listeners: Sequence[EventListener]) -> Script[None]:
    given = [(one.timer.id,) for one in sorted(listeners, key=lambda one: one.timer.id)]
    rows = yield ForEach(ask, (("trigger_id", "uuid"),), given)
    counts = {row[0]: (row[1], row[2]) for row in rows}
    alive = yield from live_among({execution for _, execution in counts.values() if execution is not None})
    for one in listeners:
        one.fired, one.last = counts.get(one.timer.id, (one.fired, None))
        one.turn = Turn(busy=one.last in alive)


def _take_turns(keyed: dict[str, EventListener]) -> Script[None]:
    """Lock and read the turns of listeners.

    If the last execution of a trigger is live, but was started before the trigger had turns, it gets the turn.
    """
    standing = yield from turns.read_turns(keyed)
    unruly = {key: one.last for key, one in keyed.items() if one.last and one.turn.busy and standing[key].is_free}
    standing |= yield from turns.adopt(unruly)
    for key, one in keyed.items():
        one.turn = standing[key]


def decide_at(
    listener: EventListener,
    event_id: UUID,
    event_key: str,
    scope: dict[str, Any],
    lead: Lead,
    check: Check,
    now: Instant,
) -> ListenerDecision:
    """Decide one event at one listener, and build its execution. An error skips only this listener.

    Other events of the same batch are ignored; `_start` decides with regard to them.
    """
    try:
        verdict = decide_event(listener.listening(), scope, now)
    except Exception as error:
        return ListenerDecision(event_id, listener, Verdict("skipped-trouble", describe_error(error)))
    if not verdict.runs:
        return ListenerDecision(event_id, listener, verdict)
    try:
        item = fill_params(listener.timer.params, scope)
    except TemplateError as error:
        return ListenerDecision(event_id, listener, Verdict("skipped-params", str(error)[:MOST_REASON]))
    target = arm_of(listener.target, item, {}, lambda: event_id)
    refusal, wanted = check(target, item), None
    try:
        if refusal is None:
            extra = Extra(origin="event", trigger=listener.timer.id, event=event_key)
            within = target.spec.within if listener.timer.rules.within is None else listener.timer.rules.within
            deadline = deadline_after(verdict.due or now, within)
            wanted = execution_of(target, extra, lead, due_at=verdict.due or 0, item=item, deadline=deadline)
        refuse_over_budget()
    except BadInput as error:
        refusal = refusal or error.detail
    if refusal is not None:
        return ListenerDecision(event_id, listener, Verdict("skipped-params", refusal[:MOST_REASON]))
    return ListenerDecision(event_id, listener, verdict, wanted)


class WrittenFires(Struct, frozen=True):
    """The executions and parcels that were written for decided events."""

    executions: dict[tuple[UUID, UUID], UUID]  # (trigger, event) -> execution
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    blocked: bool = False  # an execution waits for its turn
    decided: Sequence[ListenerDecision] = ()  # the final decisions, with refusals


def write_fires(
    decided: Sequence[ListenerDecision], new_id: Callable[[], UUID], now: Instant, room: Room = ALL_ROOM
) -> Script[WrittenFires]:
    """Write the executions of the events that fired, and the ledger of all decisions.

    Executions for which there is no `room` are refused.
    """
    decided, screening = yield from _start(decided, room, new_id, now)
    fired = [(d, d.wanted) for d in decided if d.wanted is not None]
    asked = yield from assign_share_lanes([wanted for _, wanted in fired], now)
    placed, parcels = place(asked, {}, new_id, now)
    free = [(parcel, lead) for parcel, lead in parcels if not turns.is_gated(parcel)]
    consequences = Consequences()
    if free:
        consequences.lanes, consequences.wake_at = yield from put_parcels(free, now)
    if any(d.listener.key is not None for d, _ in fired):
        yield from _settle([parcel for parcel, _ in parcels], [d.listener for d, _ in fired], new_id, now, consequences)
    executions: dict[tuple[UUID, UUID], UUID] = {}
    for (d, _), receipts in zip(fired, placed, strict=True):
        executions[d.listener.timer.id, d.event] = d.listener.last = receipts[0].execution_id
    seen: Counter[UUID] = Counter()
    rows = []
    for d in decided:
        trigger_id = d.listener.timer.id
        at = now + seen[trigger_id]  # a microsecond apart, so that a list of fires can be read in pages
        seen[trigger_id] += 1
        execution = executions.get((trigger_id, d.event))
        rows.append((trigger_id, d.event, d.listener.target.job, at, d.verdict.disposition, d.verdict.cause, execution))
    if rows:
        yield Insert("event_fires", EVENT_FIRES, rows)
    yield from screening.write_keys([receipts[0].execution_id for receipts in placed])
    yield from screening.settle(new_id, now)
    counting = {d.listener.timer.id: d.listener for d, _ in fired if d.listener.depends_on_fires}
    columns: Columns = (("trigger_id", "uuid"), ("fired", "int"), ("last_execution", "uuid"))
    if counting:
        yield ForEach(
            COUNT_FIRES, columns, [(trigger_id, one.fires, one.last) for trigger_id, one in sorted(counting.items())]
        )
    blocked = len(free) < len(parcels)
    return WrittenFires(
        executions, [parcel for parcel, _ in parcels], consequences.lanes, consequences.next, blocked, decided
    )


def _start(
    decided: Sequence[ListenerDecision], room: Room, new_id: Callable[[], UUID], now: Instant
) -> Script[tuple[list[ListenerDecision], Screening]]:
    """Decide, in the order of the events, which executions start.

    This depends on the earlier fires of the triggers, on the keys of unique jobs and on quotas. Return the decisions,
    with the reasons of refusals and delays, and the result of the screening.
    """
    fired = [(at, d, d.wanted) for at, d in enumerate(decided) if d.wanted is not None]
    specs = [d.listener.target.spec for _, d, _ in fired]
    screener = yield from prepare_screening([wanted for *_, wanted in fired], specs, room.bounds, new_id, now)
    refused = screener.result.refused
    skipped: dict[int, Verdict] = {}
    final = list(decided)
    newest: dict[UUID, int] = {}  # trigger -> its newest execution that waits, if a newer one replaces it
    for i, (at, d, wanted) in enumerate(fired):
        listener = d.listener
        verdict = decide_again(listener.listening()) if listener.depends_on_fires else None
        if verdict is not None:
            skipped[i] = verdict
            continue
        is_replacing = listener.replaces and not listener.turn.is_free
        older = newest.get(listener.timer.id) if is_replacing else None
        older = None if older in refused else older
        for j in screener.take(i, older):
            fired[j][1].listener.fires -= 1
        if i in refused:
            continue
        if older is not None:
            skipped[older] = OVERTAKEN
        if is_replacing:
            newest[listener.timer.id] = i
        final[at] = _fire(d, wanted, room.delays)
    waits = next((one.waits for one in refused.values() if one.waits is not None), None)
    if room.raise_if_full and waits is not None:
        raise waits
    skipped |= {i: Verdict(one.disposition, one.cause[:MOST_REASON]) for i, one in refused.items()}
    for i, verdict in skipped.items():
        at, d, _ = fired[i]
        final[at] = ListenerDecision(d.event, d.listener, verdict)
    return final, screener.result


def _fire(d: ListenerDecision, wanted: NewExecution, delays: Delays) -> ListenerDecision:
    """Count a fire, and mark its execution with its turn."""
    listener, key, turn = d.listener, d.listener.key, d.listener.turn
    listener.fires += 1
    listener.turn = Turn(busy=True, waiting=turn.waiting + (not turn.is_free))
    if key is not None:
        wanted = turns.mark_turn(wanted, key, turn)
    delay = delay_of(delays, wanted.envelope) if d.verdict.disposition == "fired" else None
    return ListenerDecision(d.event, listener, d.verdict if delay is None else Verdict("fired", delay), wanted)


def _settle(
    parcels: Sequence[Parcel],
    fired: Sequence[EventListener],
    new_id: Callable[[], UUID],
    now: Instant,
    consequences: Consequences,
) -> Script[None]:
    """Put executions in line for their turns; end waiting executions that they replace, and advance dependent jobs."""
    replacing = {one.key for one in fired if one.key is not None and one.replaces}
    over = yield from turns.settle(parcels, replacing, now)
    if over:
        yield from lock_around({one.job for one in over})
        yield from arrive(over, new_id, now, consequences)
