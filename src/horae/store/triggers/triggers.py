"""Scripts that add, replace, pause, resume and end triggers. The module `fire` decides their fires.

Every transaction that changes a trigger or decides its fires locks the row of its timer first. So no fire is decided
twice.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import HoraeError
from horae.model.triggers.calendars.resolve import no_such_calendar
from horae.model.triggers.decisions.decide import Disposition, LedgerRun, cover, due_after, is_spent
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger, watch_id
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Timed, Trigger, begin
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, Insert, Row, Script, Statement
from horae.store.triggers import calendars

ADD = Statement(
    "add_trigger",
    "INSERT INTO triggers (id, job, namespace, name, version, definition, rules, params, event, state, valid_from,"
    " created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
)
ADD_TIMER = Statement(
    "add_timer",
    "INSERT INTO timers (trigger_id, job, namespace, next_fire_at, decided_through, last_execution, fired, moved_to)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
)
# The columns that `read_timer` reads, of a timer `t` and its trigger `g`.
TIMER = (
    "g.id, g.name, g.definition, g.rules, g.params, g.state, t.next_fire_at, t.decided_through, t.last_execution,"
    " t.fired, t.moved_to"
)
COUNT = 11  # the number of these columns
OF_JOB = Statement(
    "triggers_of_job",
    f"SELECT {TIMER} FROM timers t JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id"
    " FOR UPDATE OF t",
)
READ_OF_JOB = Statement(
    "read_triggers_of_job",
    f"SELECT {TIMER} FROM timers t JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id",
)
ENDED = Statement(
    "ended_triggers_of_job",
    "SELECT name, ended_from, fired FROM triggers WHERE job = $1 AND state = 'ended' AND valid_to = (SELECT"
    " max(x.valid_to) FROM triggers x WHERE x.job = triggers.job AND x.name = triggers.name) ORDER BY id",
)
END = Statement(
    "end_trigger", "UPDATE triggers SET state = 'ended', valid_to = $2, ended_from = state, fired = $3 WHERE id = $1"
)
SET_STATE = Statement("set_trigger_state", "UPDATE triggers SET state = $2 WHERE id = $1")
DROP_TIMER = Statement("drop_timer", "DELETE FROM timers WHERE trigger_id = $1")
SET_TIMER = Statement("set_timer", "UPDATE timers SET next_fire_at = $2, decided_through = $3 WHERE trigger_id = $1")
# The id of a watch depends on the job, the trigger's name and the location. So if the same location was watched before,
# the watch continues, and does not fire again for the files that it has seen.
BEGIN_WATCH = Statement(
    "begin_watch",
    "INSERT INTO watches (id, trigger_id, job, namespace, began_at, next_poll_at) VALUES ($1, $2, $3, $4, $5, $5)"
    " ON CONFLICT (id) DO UPDATE SET trigger_id = excluded.trigger_id, next_poll_at = excluded.next_poll_at,"
    " trouble = NULL",
)
FIRES: Columns = (
    ("trigger_id", "uuid"), ("first", "bigint"), ("last", "bigint"), ("disposition", "text"), ("cause", "text"),
    ("execution", "uuid"), ("decided_at", "bigint"),
)  # fmt: skip
EDITED = "the trigger was changed before this was decided"
# Created once, because a decoder of a union is slow to create.
_decode_trigger: Callable[[str], Trigger] = msgspec.json.Decoder(Trigger).decode
_decode_rules = msgspec.json.Decoder(Rules).decode
MAX_REASON = 500  # characters of the reason why a trigger could not be decided


State = Literal["active", "paused"]


class Timer(Struct, frozen=True, kw_only=True, gc=False):
    """A trigger of a job with the columns of its row in `timers`, which change with each fire."""

    id: UUID
    name: str
    trigger: Trigger
    rules: Rules
    params: dict[str, Any] = {}
    state: State = "active"
    next_fire_at: Instant | None
    decided_through: Instant
    last_execution: UUID | None = None
    fired: int = 0  # fires that ran, for `max_fires`
    moved_to: Instant | None = None  # the target of the last fire that a calendar moved

    @property
    def when(self) -> NamedTrigger:
        return NamedTrigger(name=self.name, trigger=self.trigger, rules=self.rules, params=self.params)


class Owner(Struct, frozen=True):
    """The job of a trigger, at the version that defines it."""

    job: UUID
    namespace: int
    version: int
    paused: bool = False


class Predecessor(Struct, frozen=True, kw_only=True):
    """The state that a trigger takes over from the trigger that it replaces."""

    state: State
    fired: int = 0
    last_execution: UUID | None = None
    moved_to: Instant | None = None
    from_: Instant | None = None  # the new trigger decides the fires after this instant; None: those after its creation


def add(
    trigger_id: UUID, owner: Owner, when: NamedTrigger, now: Instant, predecessor: Predecessor | None = None
) -> Script[None]:
    """Add a trigger that fires from now on, or after `predecessor.from_`.

    A paused trigger, or a trigger of a paused job, gets no next fire.
    """
    old = predecessor or Predecessor(state="paused" if when.paused else "active")
    decided = begin(when.trigger, now) if old.from_ is None else old.from_
    asleep = owner.paused or old.state == "paused" or is_spent(when.rules, old.fired)
    following = None if asleep else due_after(when.trigger, when.rules, decided)
    params = _json(when.params) if when.params else None
    row = (
        trigger_id,
        owner.job,
        owner.namespace,
        when.name,
        owner.version,
        _json(when.trigger),
        _json(when.rules),
        params,
    )
    event = when.trigger.event if isinstance(when.trigger, EventTrigger) else None
    yield Fetch(ADD, (*row, event, old.state, decided, now))
    timer = (trigger_id, owner.job, owner.namespace, following, decided, old.last_execution, old.fired, old.moved_to)
    yield Fetch(ADD_TIMER, timer)
    if when.rules.calendars:
        yield from _use_calendars(trigger_id, owner.namespace, when.rules)
    if isinstance(when.trigger, WatchTrigger):
        watch = watch_id(owner.job, when.name, when.trigger.url)
        yield Fetch(BEGIN_WATCH, (watch, trigger_id, owner.job, owner.namespace, now))


def _use_calendars(trigger_id: UUID, namespace: int, rules: Rules) -> Script[None]:
    """Record that a trigger uses its calendars; raise an error if one does not exist.

    The caller holds the lock on calendars.
    """
    missing = yield from calendars.use(namespace, rules.calendars, trigger_id, rules.outside)
    if missing:
        raise no_such_calendar(missing[0], ())


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def of_job(job: UUID, *, lock: bool = False) -> Script[list[Timer]]:
    """Return a job's triggers; with `lock`, they are locked, so that they cannot fire meanwhile."""
    rows = yield Fetch(OF_JOB if lock else READ_OF_JOB, (job,))
    return [read_timer(row) for row in rows]


def ended(job: UUID) -> Script[dict[str, Predecessor]]:
    """Return the last states of ended triggers of a job by name, for new triggers with the same names to take over."""
    rows = yield Fetch(ENDED, (job,))
    return {name: Predecessor(state=state, fired=fired or 0) for name, state, fired in rows}


def read_timer(row: Row) -> Timer:
    """Read a timer from the columns of TIMER."""
    return Timer(
        id=row[0], name=row[1], trigger=_read_trigger(row[2]), rules=_read_rules(row[3]),
        params=msgspec.json.decode(row[4]) if row[4] else {},
        state=row[5], next_fire_at=row[6], decided_through=row[7], last_execution=row[8], fired=row[9],
        moved_to=row[10],
    )  # fmt: skip


@lru_cache(maxsize=8192)
def _read_trigger(text: str) -> Trigger:
    """Decode a trigger; results are cached, because the definitions of due triggers are often equal.

    Triggers with equal texts then are one object, whose hash is computed once.
    """
    return _decode_trigger(text)


@lru_cache(maxsize=8192)
def _read_rules(text: str) -> Rules:
    return _decode_rules(text)


def end(
    timer: Timer,
    now: Instant,
    disposition: Disposition = "skipped-misfire",
    cause: str = "the trigger ended before this was decided",
) -> Script[None]:
    """End a trigger, and write a ledger row with this disposition and cause for its undecided fires.

    The end is now, or the last decided instant if that is later. A trigger that had all the fires that its rules allow
    ended with the last of them.
    """
    runs = _left_out(timer, now, disposition, cause)
    if runs:
        yield from put_fires([(timer.id, run, None) for run in runs], now)
    ended_at = timer.decided_through if is_spent(timer.rules, timer.fired) else max(now, timer.decided_through)
    yield from _drop(timer, ended_at)


def _drop(timer: Timer, ended_at: Instant) -> Script[None]:
    yield Fetch(END, (timer.id, ended_at, timer.fired))
    yield Fetch(DROP_TIMER, (timer.id,))
    if timer.rules.calendars:
        yield from calendars.drop_uses(timer.id)


def replace(
    timer: Timer, trigger_id: UUID, owner: Owner, when: NamedTrigger, state: State, now: Instant
) -> Script[None]:
    """Replace a trigger by another version, which takes over its count of fires and its last execution.

    If the definition of the fire times is the same, the new version decides the fires that the old one left undecided.
    Otherwise it begins now, or after the last decided fire if that is later than now. A trigger that had no fires left
    has no undecided fires; if the new version allows more fires, they begin now.
    """
    asleep = owner.paused or timer.state == "paused"
    has_ended = isinstance(timer.trigger, Timed) and timer.next_fire_at is None and not asleep
    goes_on = timer.trigger == when.trigger and not has_ended
    if goes_on:
        yield from _drop(timer, timer.decided_through)
    else:
        yield from end(timer, now, "skipped-paused" if asleep else "skipped-misfire", EDITED)
    predecessor = Predecessor(
        state=state, fired=timer.fired, last_execution=timer.last_execution, moved_to=timer.moved_to,
        from_=timer.decided_through if goes_on or timer.decided_through > now else None,
    )  # fmt: skip
    yield from add(trigger_id, owner, when, now, predecessor)


def _left_out(timer: Timer, now: Instant, disposition: Disposition, cause: str) -> tuple[LedgerRun, ...]:
    """Return one ledger run for the undecided fires up to `now`; none if there are no such fires.

    If the fires cannot be computed, the run covers the whole time, so that the trigger can still be ended.
    """
    if is_spent(timer.rules, timer.fired):
        return ()
    try:
        return cover(timer.trigger, timer.rules, timer.decided_through, now, disposition, cause)
    except Exception as error:
        if timer.decided_through >= now:
            return ()
        detail = f"{cause}; the instants cannot be computed: {describe_error(error)}"
        return (LedgerRun(timer.decided_through + 1, now, disposition, detail),)


def describe_error(error: Exception) -> str:
    """Return the text of an error, as the reason why a trigger could not be decided."""
    detail = error.detail if isinstance(error, HoraeError) else f"{type(error).__name__}: {error}"
    return detail[:MAX_REASON]


def pause(timer: Timer) -> Script[None]:
    """Stop a trigger from firing until it is resumed, because it or its job is paused. The state stays as it is."""
    yield Fetch(SET_TIMER, (timer.id, None, timer.decided_through))


def resume(timer: Timer, now: Instant, cause: str = "the job was paused") -> Script[None]:
    """Let a trigger fire again, and cover the fires during the pause with one ledger row.

    Do nothing if the trigger itself is paused, not only its job.
    """
    if timer.state == "paused" or is_spent(timer.rules, timer.fired):
        return
    through = now - timer.rules.offset  # a fire is due `offset` after its nominal time: later ones are still to come
    runs = _left_out(timer, through, "skipped-paused", cause)
    if runs:
        yield from put_fires([(timer.id, run, None) for run in runs], now)
    decided = max(through, timer.decided_through)
    yield Fetch(SET_TIMER, (timer.id, _next_of(timer, decided), decided))


def set_state(timer: Timer, state: State, owner: Owner, now: Instant) -> Script[None]:
    """Pause or resume one trigger. While its job is paused, only the state is written, and it does not fire."""
    if timer.state == state:
        return
    yield Fetch(SET_STATE, (timer.id, state))
    if owner.paused:
        return
    if state == "paused":
        yield from pause(timer)
    else:
        yield from resume(msgspec.structs.replace(timer, state=state), now, "the trigger was paused")


def _next_of(timer: Timer, decided: Instant) -> Instant | None:
    """Return the due time of the first fire after `decided`.

    If it cannot be computed, the trigger is due at once; `fire` then records the reason in its row.
    """
    try:
        return due_after(timer.trigger, timer.rules, decided)
    except Exception:
        return decided


def put_fires(fires: Iterable[tuple[UUID, LedgerRun, UUID | None]], now: Instant) -> Script[None]:
    """Insert ledger rows. Their primary key is a second protection against a double fire, besides the timer's lock."""
    rows = [
        (trigger, run.first, run.last, run.disposition, run.cause, execution, now) for trigger, run, execution in fires
    ]
    yield Insert("fires", FIRES, rows)
