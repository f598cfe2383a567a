"""Operations on backfills: create, show, pause, resume and cancel. The backfiller processes them."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import as_id, find_job, in_quotes, nearest
from horae.engine.definitions.params import ParamsChecker
from horae.env import SECOND, Env, Instant
from horae.errors import BadInput, Conflict, Gone, HoraeError, NotFound
from horae.features.backfills.model.plan import Outline, Stretch, outline, stretches
from horae.features.backfills.model.request import BackfillRequest
from horae.features.backfills.model.values import (
    MOST_FIRES,
    Backfill,
    BackfillCounts,
    BackfillState,
)
from horae.features.backfills.model.view import (
    BackfillPlan,
    BackfillRunView,
    BackfillView,
    count_to_run,
    show_backfill,
    show_plan,
)
from horae.features.backfills.store import backfills as moves
from horae.features.backfills.store import work as backfill_work
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.view import Page
from horae.model.definitions.job import Job
from horae.model.expressions.template import TemplateError
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.script import Script
from horae.store.triggers import ledger

AHEAD = 60 * SECOND  # how far `to` may be in the future, because clocks differ
MOST_UNFINISHED = 1_000  # combinations of a job and a state that the metrics show
LAST = UUID(int=2**128 - 1)
FIRST = UUID(int=0)
_BOUNDS = "`from` is the first instant that counts, `to` the first that does not."


class Unfinished(Struct, frozen=True):
    """The uncompleted backfills of one job in one state, with the number of their fires in each state."""

    namespace: int
    job: str
    state: BackfillState
    backfills: int
    fires: dict[str, int]


class Backfills:
    """The operations on backfills."""

    def __init__(
        self,
        env: Env,
        store: Store,
        *,
        wake: Callable[[], object] = lambda: None,
        cancel: Callable[[int, UUID, str], Awaitable[object]] | None = None,
        fire_due: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Set the callbacks: `wake` is called when there is work, and `cancel` with an execution to cancel.

        `fire_due` lets the scheduler decide due fires, so that the newest fires are in the ledger.
        """
        self._env, self._store, self._params = env, store, ParamsChecker()
        self._wake, self._cancel, self._fire_due = wake, cancel, fire_due

    async def plan(self, namespace: int, asked: BackfillRequest) -> BackfillPlan:
        """Return the fires that a backfill would run, without writing anything."""
        job, backfill, found, already = await self._drafted(namespace, asked, "")
        return show_plan(backfill, job.name, found, already, _notes(backfill, found, already))

    async def create(self, namespace: int, asked: BackfillRequest, caller: str = "") -> BackfillView:
        """Create a backfill. Raises NotFound, BadInput for an invalid request, and Conflict for a deleted job."""
        job, backfill, found, already = await self._drafted(namespace, asked, caller)
        count = count_to_run(backfill, found, already)
        if count > MOST_FIRES:
            detail = f"{count:,} fires would run; a backfill may run at most {MOST_FIRES:,}."
            raise BadInput(detail, "Give a shorter range.", field="from")
        await self._store.write(lambda: moves.put(backfill))
        self._wake()
        return show_backfill(backfill, job.name, _notes(backfill, found, already))

    async def get(self, namespace: int, ref: str | UUID) -> BackfillView:
        """Return a backfill. Raises NotFound."""
        found = await self._find(namespace, ref)
        return (await self._shown([found]))[0]

    async def list(
        self,
        namespace: int,
        *,
        job: str | None = None,
        state: BackfillState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[BackfillView]:
        """Return a page of backfills, newest first."""
        check_limit(limit)
        of = None if job is None else (await find_job(self._store, namespace, job)).job.id
        before = LAST if cursor is None else read_cursor(cursor, UUID)
        found = await self._store.read(lambda: moves.page(namespace, before, of, state, limit + 1))
        following = make_cursor(found[limit - 1].id) if len(found) > limit else None
        return Page(items=await self._shown(found[:limit]), next_cursor=following)

    async def unfinished(self) -> "list_of[Unfinished]":
        """Count the uncompleted backfills of all namespaces, by job and state."""
        found = await self._store.read(lambda: moves.count_unfinished(MOST_UNFINISHED))
        return [Unfinished(one.namespace, one.job, one.state, one.backfills, _by_standing(one.counts)) for one in found]

    async def runs(
        self, namespace: int, ref: str | UUID, *, limit: int = 50, cursor: str | None = None
    ) -> Page[BackfillRunView]:
        """Return a page of the fires that a backfill ran, ordered by fire time."""
        check_limit(limit)
        backfill = await self._find(namespace, ref)
        after = (-1, FIRST) if cursor is None else read_cursor(cursor, tuple[int, UUID])
        found = await self._store.read(lambda: moves.runs(backfill.id, after, limit + 1))
        following = make_cursor((found[limit - 1].at, found[limit - 1].trigger)) if len(found) > limit else None
        items = [
            BackfillRunView(
                fire_at=format_instant(run.at), trigger=run.name, execution_id=run.execution, forced=run.forced,
                outcome=run.outcome,
            )
            for run in found[:limit]
        ]  # fmt: skip
        return Page(items=items, next_cursor=following)

    async def pause(self, namespace: int, ref: str | UUID) -> BackfillView:
        """Stop starting executions until the backfill is resumed; running ones continue."""
        return await self._change(namespace, ref, "paused", ["running", "paused"])

    async def resume(self, namespace: int, ref: str | UUID) -> BackfillView:
        """Continue a paused backfill."""
        return await self._change(namespace, ref, "running", ["paused", "running"])

    async def cancel(self, namespace: int, ref: str | UUID, *, executions: bool = False) -> BackfillView:
        """Cancel a backfill for good. With `executions`, its unfinished executions are cancelled, too."""
        view = await self._change(namespace, ref, "cancelled", ["running", "paused", "cancelled"])
        if executions and self._cancel is not None:
            for _, _, execution in await self._store.read(lambda: moves.live_runs(view.backfill_id)):
                try:
                    await self._cancel(namespace, execution, f"backfill {view.backfill_id} was cancelled")
                except (Conflict, NotFound, Gone):
                    continue  # it ended meanwhile
        return view

    async def _drafted(self, namespace: int, asked: BackfillRequest, caller: str) -> tuple[Job, Backfill, Outline, int]:
        """Check a request. Return the job, the backfill, the outline of its fires, and the number that ran before."""
        job = (await find_job(self._store, namespace, asked.job)).job
        if job.state == "deleted":
            raise Conflict(f'Job "{job.name}" is deleted.', f"Bring it back first: `horae jobs restore {job.id}`.")
        now = self._env.now()
        since, until = _range(asked, now)
        backfill = Backfill(
            id=self._env.new_id(), namespace=namespace, job=job.id, trigger=asked.trigger, since=since, until=until,
            newest_first=asked.order == "newest", force=asked.force, max_concurrent=asked.max_concurrent,
            priority=asked.priority, params=None if asked.params is None else asked.params.decode(), created_by=caller,
            created_at=now,
        )  # fmt: skip
        if self._fire_due is not None:
            await self._fire_due()
        known_from, parts, already = await self._store.read(lambda: _stretches(backfill, job))
        self._check_params(backfill, job, parts)
        found = outline(parts)
        unknown = 0 if asked.force else found.forgotten
        counts = BackfillCounts(total=found.total, unknown=unknown)
        made = structs.replace(backfill, counts=counts, first_at=found.first, last_at=found.last, known_from=known_from)
        return job, made, found, already

    def _check_params(self, backfill: Backfill, job: Job, parts: Sequence[Stretch]) -> None:
        """Check the params of the backfill over those of each trigger, filled in as for the first fire."""
        if backfill.params is None:
            return
        for part in {(part.version.name, part.version.params): part for part in parts}.values():
            at = part.first()
            if at is not None:
                try:
                    item = backfill_work.params_of(backfill, job.spec.params, part.version, at)
                except TemplateError as error:
                    detail = f"The params of trigger {part.version.name} cannot be filled: {error}."
                    raise BadInput(detail, "Change the trigger.", field="params") from None
                self._params.check(item, job)

    async def _find(self, namespace: int, ref: str | UUID) -> Backfill:
        backfill_id = as_id(ref)
        found = None if backfill_id is None else await self._store.read(lambda: moves.get(backfill_id, namespace))
        if found is None:
            raise NotFound(f"There is no backfill {str(ref)[:60]}.", "List them with `horae backfills list`.")
        return found

    async def _shown(self, found: Sequence[Backfill]) -> "list_of[BackfillView]":
        names = await self._store.read(lambda: job_reads.names_of(sorted({b.job for b in found}))) if found else {}
        return [show_backfill(backfill, names.get(backfill.job, str(backfill.job))) for backfill in found]

    async def _change(
        self, namespace: int, ref: str | UUID, state: BackfillState, among: Sequence[BackfillState]
    ) -> BackfillView:
        backfill_id = (await self._find(namespace, ref)).id
        before = await self._store.write(lambda: moves.change(backfill_id, namespace, state, among))
        if before is not None and before.state not in among:
            detail = f"Backfill {backfill_id} is {before.state}."
            raise Conflict(detail, "A backfill that has ended stays so; create another one for the remaining fires.")
        self._wake()
        return await self.get(namespace, backfill_id)


list_of = list  # the class has a method named `list`


def _stretches(backfill: Backfill, job: Job) -> Script[tuple[Instant, Sequence[Stretch], int]]:
    """Return the instant since which the ledger is complete, a backfill's stretches, and how many fires ran before."""
    versions = yield from backfill_work.chosen_versions(backfill)
    if not versions:
        raise (yield from _nothing_to_run(backfill, job))
    known_from = yield from ledger.known_from()
    reaching = [
        structs.replace(one.version, through=backfill.until - 1) if one.live and not one.spent else one.version
        for one in versions
    ]
    parts = stretches(reaching, backfill.since, backfill.until, known_from)
    already = 0
    for part in parts:
        already += yield from ledger.count_ran(part.version.id, part.after, part.through)
    return known_from, parts, already


def _nothing_to_run(backfill: Backfill, job: Job) -> Script[HoraeError]:
    """Return the error about a job or a trigger without nominal fires."""
    names = sorted({one.version.name for one in (yield from ledger.versions(backfill.job))})
    if backfill.trigger is None or not names:
        remedy = "Only triggers that fire at instants can be backfilled: cron, interval and once."
        return BadInput(f'Job "{job.name}" has no trigger to backfill.', remedy, field="job")
    near = nearest(backfill.trigger, names)
    remedy = f"Did you mean {in_quotes(near)}?" if near else f"The job's triggers are {in_quotes(names[:5])}."
    detail = f'Job "{job.name}" has no trigger "{backfill.trigger[:128]}" that fires at instants.'
    return NotFound(detail, remedy, field="trigger")


def _by_standing(c: BackfillCounts) -> dict[str, int]:
    return {
        "pending": c.pending, "skipped": c.already + c.unknown, "live": c.live, "succeeded": c.succeeded,
        "failed": c.failed, "ended_otherwise": c.ended,
    }  # fmt: skip


def _range(asked: BackfillRequest, now: Instant) -> tuple[Instant, Instant]:
    since, until = asked.since, asked.until
    if until <= since:
        detail = f"`to` ({format_instant(until)}) is not after `from` ({format_instant(since)})."
        raise BadInput(detail, _BOUNDS, field="to")
    if until > now + AHEAD:
        detail = f"`to` ({format_instant(until)}) is in the future: the triggers themselves will run those fires."
        raise BadInput(detail, f"Give a time up to now ({format_instant(now)}).", field="to")
    if since >= now:
        raise BadInput(f"`from` ({format_instant(since)}) is in the future.", _BOUNDS, field="from")
    return since, min(until, now)


def _notes(backfill: Backfill, found: Outline, already: int) -> list[str]:
    """Return notes that tell why some fires run, and others do not."""
    notes = []
    if not found.total:
        notes.append("There is no fire in this range.")
    if found.before:
        notes.append(f"For {_fires(found.before)} before the trigger was made, its oldest stored version is used.")
    if found.forgotten:
        kept = format_instant(backfill.known_from)
        fate = "will run" if backfill.force else "will not run without force"
        notes.append(
            f"The ledger is complete since {kept}. {_fires(found.forgotten)} before that may have run, and {fate}."
        )
    if already:
        fate = "will run again" if backfill.force else "will not run again without force"
        notes.append(f"{_fires(already)} ran before, and {fate}.")
    return notes


def _fires(count: int) -> str:
    return f"{count:,} fire{'' if count == 1 else 's'}"
