"""The processing of a backfill: the next fires become executions, each fire once, on any server.

One transaction locks the backfill's row, creates the executions, splits the ledger rows that covered their fires,
records the runs and advances the backfill. It creates at most `max_concurrent` executions less the live ones, which it
counts under that lock.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.features.backfills.model.plan import Stretch, next_fires, stretches
from horae.features.backfills.model.values import Backfill, BackfillCounts
from horae.features.backfills.model.work import FireChoice, Pick, choose, rewrite
from horae.features.backfills.store.backfills import COLUMNS, live_runs, read
from horae.model.admission.quota import UNBOUNDED, QuotaBounds
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.submission import NewExecution, deadline_after
from horae.model.expressions.meter import ITEM_STEPS, MOST_STEPS, Meter, refuse_over_budget, shared_budget
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.resolve import no_such_calendar
from horae.model.triggers.decisions.decide import cover
from horae.model.triggers.decisions.params import fill_fire_params, fire_scope
from horae.model.triggers.decisions.values import previous_fire
from horae.model.triggers.ledger import LedgerRow, TriggerVersion
from horae.store.admission.share_lanes import assign_share_lanes
from horae.store.base.live import live_among
from horae.store.base.shelves import Columns, names
from horae.store.executions.entering.placing import place
from horae.store.executions.entering.submit import CURRENT
from horae.store.executions.parcels import put_parcels
from horae.store.script import Fetch, ForEach, Insert, Lock, Script, Statement
from horae.store.triggers import calendars, ledger, triggers
from horae.store.triggers.ledger import StoredVersion
from horae.store.triggers.refusals import Refusal, screen
from horae.store.triggers.targets import Lead, Target, execution_of, targets
from horae.store.triggers.triggers import describe_error

MOST_READ = 500  # fires that one step reads
BATCH = 128  # executions that one step creates: SQLite has only one writer at a time
PAUSED = "the trigger was paused"
DELETED = "The job was deleted."

# SKIP LOCKED: a server that has locked the backfill processes it, so other servers skip it.
TAKE = Statement(
    "take_backfill",
    f"SELECT {names(COLUMNS)} FROM backfills WHERE id = $1 AND completed_at IS NULL FOR UPDATE SKIP LOCKED",
)
ADVANCE = Statement(
    "advance_backfill",
    "UPDATE backfills SET state = $2, cursor_at = $3, cursor_name = $4, already = $5, unknown = $6, started = $7,"
    " succeeded = $8, failed = $9, ended = $10, note = $11, completed_at = $12 WHERE id = $1",
)
ENDED = Statement(
    "ended_executions",
    "SELECT given.execution, h.state FROM given JOIN history h ON h.parcel = given.parcel AND h.lo <= given.item"
    " AND h.hi > given.item",
)
SETTLE = Statement(
    "settle_backfill_runs",
    "UPDATE backfill_runs SET outcome = given.outcome FROM given WHERE backfill_runs.backfill = $4"
    " AND backfill_runs.trigger_id = given.trigger_id AND backfill_runs.at = given.at",
)
RUNS: Columns = (
    ("backfill", "uuid"), ("trigger_id", "uuid"), ("at", "bigint"), ("execution", "uuid"), ("forced", "bool"),
)  # fmt: skip


class BackfillStep(Struct, frozen=True):
    """The result of one step: the backfill after it, and the new parcels.

    `lanes` and `wake_at` are for the hint to other services. `more` says that another step can start more at once.
    """

    backfill: Backfill
    parcels: list[Parcel] = []
    lanes: dict[int, int] = {}
    wake_at: Instant | None = None
    more: bool = False


class _NewExecutions(Struct, frozen=True):
    """The executions that a step created."""

    chosen: FireChoice
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    executions: list[UUID]


def process(
    backfill_id: UUID,
    lead: Lead,
    new_id: Callable[[], UUID],
    now: Instant,
    limit: int = MOST_READ,
    bounds: QuotaBounds = UNBOUNDED,
) -> Script[BackfillStep | None]:
    """Record which executions of a backfill have ended, and start as many of its next fires as there is room for.

    The ledger rows, the executions and the progress of the backfill change in one transaction. So each fire runs once,
    even if several servers process the backfill, or one of them dies. If the backfill cannot continue because of an
    error, it is paused with the error as its note. Return None if another server processes the backfill, or if it is
    completed.
    """
    rows = yield Fetch(TAKE, (backfill_id,))
    if not rows:
        return None
    before = backfill = read(rows[0])
    # An advisory lock, because two backfills of one job may cover the same ledger rows.
    yield Lock((f"backfills:{backfill.job}",))  # guard: one-backfill-of-a-job
    counts, live = yield from _settle(backfill)
    backfill = structs.replace(backfill, counts=counts)
    if backfill.state == "running":
        return (yield from _start(before, backfill, live, lead, new_id, now, limit, bounds))
    if backfill.state == "cancelled" and not live:
        backfill = structs.replace(backfill, completed_at=now)
    if backfill != before:
        yield from _advance(backfill)
    return BackfillStep(backfill)


def _settle(backfill: Backfill) -> Script[tuple[BackfillCounts, int]]:
    """Record the ends of a backfill's executions. Return its new counters, and the number of live executions."""
    runs = yield from live_runs(backfill.id)
    if not runs:
        return backfill.counts, 0
    columns: Columns = (("execution", "uuid"), ("parcel", "uuid"), ("item", "int"))
    probe = [(execution, parcel_of(execution), index_of(execution)) for _, _, execution in runs]
    live = yield from live_among([execution for execution, *_ in probe])
    over = [one for one in probe if one[0] not in live]
    if not over:
        return backfill.counts, len(live)
    states: dict[UUID, str] = dict((yield ForEach(ENDED, columns, over)))
    outcomes = [(trigger, at, states.get(e, "forgotten")) for trigger, at, e in runs if e not in live]
    given: Columns = (("trigger_id", "uuid"), ("at", "bigint"), ("outcome", "text"))
    yield ForEach(SETTLE, given, outcomes, (backfill.id,))
    ends = [outcome for _, _, outcome in outcomes]
    c, good, bad = backfill.counts, ends.count("success"), ends.count("failed")
    counts = structs.replace(
        c, succeeded=c.succeeded + good, failed=c.failed + bad, ended=c.ended + len(ends) - good - bad
    )
    return counts, len(live)


def _start(
    before: Backfill, backfill: Backfill, live: int, lead: Lead, new_id: Callable[[], UUID], now: Instant, limit: int,
    bounds: QuotaBounds,
) -> Script[BackfillStep]:  # fmt: skip
    """Start the fires for which there is room; complete the backfill if none is left.

    If a unique key or a quota refuses a fire, this fire and all fires after it wait for a later step. If its unique key
    cannot be computed, the backfill is paused.
    """
    # This locks the job: a deletion either waits for this transaction, or is committed and seen below.
    yield ForEach(CURRENT, (("id", "uuid"),), [(backfill.job,)])
    target = (yield from targets([backfill.job])).get(backfill.job)
    if target is None or target.state == "deleted":
        gone = structs.replace(backfill, state="cancelled", note=DELETED, completed_at=None if live else now)
        yield from _advance(gone)
        return BackfillStep(gone)
    room = backfill.max_concurrent - live  # guard: backfill-counts-live
    try:
        parts, pending = yield from _parts(backfill, now)
        fires = _decided_fires(
            next_fires(parts, backfill.at, limit, newest_first=backfill.newest_first), backfill, pending
        )
        chosen = (yield from _choose(backfill, fires, min(room, BATCH))) if fires and room > 0 else None
        with shared_budget(Meter(MOST_STEPS + ITEM_STEPS * BATCH)):
            wanted = [_execution(backfill, target, pick, lead, new_id, now) for pick in chosen.picks] if chosen else []
    except Exception as error:
        stuck = structs.replace(backfill, state="paused", note=f"It cannot continue: {describe_error(error)}")
        yield from _advance(stuck)
        return BackfillStep(stuck)
    screening = yield from screen(wanted, [target.spec] * len(wanted), bounds, new_id, now, replaces=False)
    if screening.refused:
        room = screening.refuse_rest()
        chosen = (yield from _choose(backfill, fires, room)) if room else None
        wanted = wanted[:room]
    made = (yield from _make(backfill, chosen, wanted, new_id, now)) if chosen else None
    yield from screening.write_keys(made.executions if made is not None else [])
    backfill = _moved_on(backfill, made, pending, screening.first)
    if not fires and not pending and not live:
        backfill = _done(backfill, now)
    if backfill != before:
        yield from _advance(backfill)
    if made is None:
        return BackfillStep(backfill)
    more = len(made.chosen.picks) < room
    return BackfillStep(backfill, made.parcels, made.lanes, made.wake_at, more)


def _parts(backfill: Backfill, now: Instant) -> Script[tuple[list[Stretch], list[TriggerVersion]]]:
    """Return the stretches whose fires may run, and the trigger versions with undecided fires in the range.

    Undecided fires of paused triggers are decided first, because the scheduler does not decide them.
    """
    found = yield from chosen_versions(backfill)
    asleep = {one.version.id for one in found if one.is_asleep(backfill.until)}
    if asleep:
        yield from _cover(backfill, asleep, now)
        found = yield from chosen_versions(backfill)
    known_from = yield from ledger.known_from()
    reached = [one.reaching(backfill.until) for one in found]
    parts = stretches(reached, backfill.since, backfill.until, known_from)
    runnable = [part for part in parts if backfill.force or part.known != "forgotten"]
    return runnable, [one.version for one in found if one.is_pending(backfill.until)]


def _decided_fires(
    fires: list[tuple[Instant, Stretch]], backfill: Backfill, pending: Sequence[TriggerVersion]
) -> list[tuple[Instant, Stretch]]:
    """Return the fires that may run already: those before the first undecided fire of any trigger.

    A later fire must wait, because the backfill does not go back. With the newest first, all fires wait.
    """
    if not pending:
        return fires
    reached = min(version.through for version in pending)
    return [] if backfill.newest_first else [(at, stretch) for at, stretch in fires if at <= reached]


def chosen_versions(backfill: Backfill) -> Script[list[StoredVersion]]:
    """Return the versions of the backfill's triggers, with their calendars."""
    found = yield from ledger.versions(backfill.job)
    chosen = [one for one in found if backfill.trigger in (None, one.version.name)]
    wanted = {(backfill.namespace, one.version.rules.calendars) for one in chosen if one.version.rules.calendars}
    if not wanted:
        return chosen
    compiled = yield from calendars.compiled(sorted(wanted), backfill.since)
    return [_by_calendar(one, compiled.get((backfill.namespace, one.version.rules.calendars))) for one in chosen]


def _by_calendar(one: StoredVersion, calendar: Calendar | None) -> StoredVersion:
    """Return a version with the calendar that its rules name. Raises if the calendar does not exist."""
    names = one.version.rules.calendars
    if names and calendar is None:
        raise no_such_calendar(" and ".join(names), ())
    return structs.replace(one, version=structs.replace(one.version, calendar=calendar))


def _cover(backfill: Backfill, asleep: set[UUID], now: Instant) -> Script[None]:
    """Record the undecided fires of the paused triggers `asleep` as skipped, as the end of the pause would do.

    The backfill then splits these ledger rows.
    """
    for timer in (yield from triggers.of_job(backfill.job, lock=True)):
        through = min(backfill.until - 1, now - timer.rules.offset)
        if timer.id not in asleep or timer.next_fire_at is not None or timer.decided_through >= through:
            continue
        runs = cover(timer.trigger, timer.rules, timer.decided_through, through, "skipped-paused", PAUSED)
        if runs:
            yield from triggers.put_fires([(timer.id, run, None) for run in runs], now)
        yield Fetch(triggers.SET_TIMER, (timer.id, None, through))


def _choose(backfill: Backfill, fires: Sequence[tuple[Instant, Stretch]], room: int) -> Script[FireChoice]:
    """Read the ledger rows of fires, and choose the fires to run."""
    rows = yield from _rows(fires)
    return choose(fires, rows, room, force=backfill.force)


def _make(
    backfill: Backfill, chosen: FireChoice, wanted: Sequence[NewExecution], new_id: Callable[[], UUID], now: Instant
) -> Script[_NewExecutions]:
    """Write the executions for the chosen fires, their ledger rows, and the runs of the backfill."""
    placed, parcels = place((yield from assign_share_lanes(wanted, now)), {}, new_id, now)
    executions = [mine[0].execution_id for mine in placed]
    lanes, wake_at = yield from put_parcels(parcels, now)
    gone, come = rewrite(chosen.picks, executions, backfill.id, now)
    yield from ledger.exchange_rows(gone, come)
    runs = [
        (backfill.id, pick.stretch.version.id, pick.at, execution, pick.forced)
        for pick, execution in zip(chosen.picks, executions, strict=True)
    ]
    if runs:
        yield Insert("backfill_runs", RUNS, runs)
    return _NewExecutions(chosen, [parcel for parcel, _ in parcels], lanes, wake_at, executions)


def _rows(fires: Sequence[tuple[Instant, Stretch]]) -> Script[dict[UUID, list[LedgerRow]]]:
    """Read the ledger rows that cover these fires, by trigger; at most one row for each fire."""
    least: dict[UUID, tuple[Instant, int]] = {}
    for at, stretch in fires:
        lowest, count = least.get(stretch.version.id, (at, 0))
        least[stretch.version.id] = (min(lowest, at), count + 1)
    found: dict[UUID, list[LedgerRow]] = {}
    for trigger_id in sorted(least):
        found[trigger_id] = yield from ledger.rows_from(trigger_id, *least[trigger_id])
    return found


def _execution(
    backfill: Backfill, target: Target, pick: Pick, lead: Lead, new_id: Callable[[], UUID], now: Instant
) -> NewExecution:
    """Build the execution for a past fire. Its deadline counts from now, not from the fire."""
    version = pick.stretch.version
    within = target.spec.within if version.rules.within is None else version.rules.within
    since = previous_fire(version.trigger, pick.at)
    extra = Extra(
        origin="backfill", trigger=version.id, fire_at=pick.at, interval=None if since is None else (since, pick.at),
        backfill=backfill.id,
    )  # fmt: skip
    item = params_of(backfill, target.spec.params, version, pick.at)
    deadline = deadline_after(now, within)
    one = execution_of(target, extra, lead, item=item, priority=backfill.priority, deadline=deadline, new_id=new_id)
    refuse_over_budget()
    return one


def params_of(backfill: Backfill, of_job: dict[str, Any], version: TriggerVersion, at: Instant) -> bytes:
    """Return the params of the execution for a past fire: those of the backfill over those of the trigger.

    `of_job` are the params of the job, to which templates of the trigger refer. Raises TemplateError.
    """
    scope = fire_scope(of_job, version.name, at, previous_fire(version.trigger, at))
    item = fill_fire_params(msgspec.json.decode(version.params), scope)
    if backfill.params is None:
        return item
    return msgspec.json.encode({**msgspec.json.decode(item), **msgspec.json.decode(backfill.params)})


def _moved_on(
    backfill: Backfill, made: _NewExecutions | None, pending: Sequence[TriggerVersion], refusal: Refusal | None
) -> Backfill:
    """Return the backfill after its next executions. It is paused if the refusal of the next fire is for good."""
    names = ", ".join(sorted({version.name for version in pending})[:5])
    note = f"It waits until these triggers have decided: {names}." if names else ""
    if refusal is not None:
        cause = refusal.cause.rstrip(".")
        note = f"It cannot continue: {cause}." if refusal.is_final else f"It waits: {cause}."
        backfill = structs.replace(backfill, state="paused" if refusal.is_final else backfill.state)
    backfill = structs.replace(backfill, note=note)
    if made is None:
        return backfill
    c = backfill.counts
    counts = structs.replace(c, already=c.already + made.chosen.already_ran, started=c.started + len(made.chosen.picks))
    return structs.replace(backfill, at=made.chosen.place or backfill.at, counts=counts)


def _done(backfill: Backfill, now: Instant) -> Backfill:
    """Complete a backfill. Fires that it neither ran nor skipped are unknown: their ledger rows were deleted."""
    c = backfill.counts
    counts = structs.replace(c, unknown=max(0, c.total - c.already - c.started))
    return structs.replace(backfill, state="done", counts=counts, completed_at=now)


def _advance(b: Backfill) -> Script[None]:
    at, name = b.at or (None, None)
    c = b.counts
    ended = (c.already, c.unknown, c.started, c.succeeded, c.failed, c.ended)
    yield Fetch(ADVANCE, (b.id, b.state, at, name, *ended, b.note, b.completed_at))
