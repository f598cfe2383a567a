"""Operations on executions: read, list and cancel."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from uuid import UUID

from msgspec import Meta, structs

from horae.engine.base.lookup import Lookup
from horae.engine.base.refs import execution_ref, find_job, no_such_execution, tag_ref, time_bound
from horae.engine.executions.outcomes import Outcomes
from horae.env import SECOND, Env, Micros
from horae.errors import BadInput, Conflict
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.event import ChangeEvent
from horae.model.base.ids import first_id_at, index_of, instant_of, parcel_of
from horae.model.base.view import Page, shown_time
from horae.model.executions.execution import FAILED, QUEUED, RUNNING, STATES, SUCCESS, WAITING, Execution
from horae.model.executions.execution_view import AttemptView, CancelView, ExecutionView
from horae.model.executions.gates import BY_REASON
from horae.model.executions.hint import why_queued
from horae.model.executions.show_execution import show_attempt, show_execution
from horae.model.fields.values import a_text
from horae.model.tenancy.namespace import Retention
from horae.store.contract import Store
from horae.store.executions.reads import child_lists
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads import execution_reads as reads
from horae.store.executions.reads.execution_lists import END, FIRST, ExecutionFilter, Place
from horae.store.tenancy import namespaces

PENDING = frozenset({WAITING, QUEUED})
APART = 5 * SECOND  # the clocks of servers may differ by this: a child may seem older than its parent
_STATUS = f"Choose one of: {', '.join(STATES)}, or pending for waiting and queued."
TimeBound = str | int | None
Count = Annotated[int, Meta(ge=0, lt=2**31)]
EXPLAINED = ("limit", "sequence", "rate", "circuit")  # reasons to wait that other executions of the same key cause
OVERLAP = "It waits until the previous execution of the same trigger has ended, as the trigger's `overlap` demands."


class Executions:
    """Reads and cancels executions. `since` and `until` are RFC 3339 texts or instants."""

    def __init__(
        self,
        env: Env,
        store: Store,
        outcomes: Outcomes,
        *,
        retention: Micros,
        waits: Callable[[Sequence[reads.FoundExecution]], Awaitable[dict[UUID, str]]],
        held: Callable[[int, int, str], str | None],
        traced: bool,
    ) -> None:
        """Make an object that reads and cancels executions.

        `waits` describes the jobs that executions wait for. `held` returns the reason why a queue starts nothing.
        """
        self._env, self._store, self._retention = env, store, retention
        self._outcomes = outcomes
        self._waits, self._held = waits, held
        self._traced = traced
        self._found: Lookup[reads.Ref, reads.FoundExecution] = Lookup(
            lambda refs: self._store.look_up(lambda: reads.by_ids(refs))
        )

    async def get(self, namespace: int, execution: str | UUID) -> ExecutionView:
        """Return an execution. Raises NotFound, or Gone when its id is older than the retention."""
        found = await self.find(namespace, execution)
        (view,) = await self.views(namespace, [found], brief=False)
        return await self._with_retry(view) if found.execution.state == FAILED else view

    async def _with_retry(self, view: ExecutionView) -> ExecutionView:
        """Return a failed execution with the id of the execution that ran it again."""
        place = parcel_of(view.execution_id), index_of(view.execution_id)
        mark = (await self._store.read(lambda: lists.marks([(*place, place[1] + 1)]))).get(place)
        return view if mark is None else structs.replace(view, retried_as=mark.execution)

    async def attempts(self, namespace: int, execution: str | UUID) -> list[AttemptView]:
        """Return all attempts in order, including the running or last one.

        Grants that were handed back before their start are not listed.
        """
        found = await self.find(namespace, execution)
        tried = await self._store.read(lambda: reads.attempts(found.execution.id))
        return [*map(show_attempt, tried), *_latest(found.execution)]

    async def cancel(self, namespace: int, execution: str | UUID, reason: str = "") -> CancelView:
        """Cancel an execution, or ask its worker to stop it. Raises Conflict when it ended in another state before."""
        stored = (await self.find(namespace, execution)).execution
        a_text(reason, "reason", most=1000)
        verdict, session = await self._store.cancel(parcel_of(stored.id), index_of(stored.id), reason)
        if session is not None:
            self._outcomes.publish_request(session)
        if verdict == "cancelled":
            self._outcomes.publish_cancelled(stored.job)
            self._outcomes.publish_event(
                ChangeEvent("execution", stored.id, "cancelled", namespace, self._env.now(), stored.job)
            )
        view = await self.get(namespace, stored.id)
        if verdict not in ("cancelled", "asked") and view.status != "cancelled":
            raise Conflict(f"Execution {stored.id} has ended: {view.status}.", "There is nothing left to cancel.")
        return CancelView(outcome="requested" if verdict == "asked" else "cancelled", execution=view)

    async def list(
        self,
        namespace: int,
        *,
        status: str | None = None,
        job: str | None = None,
        queue: str | None = None,
        parent: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        since: TimeBound = None,
        until: TimeBound = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ExecutionView]:
        """Return a page of executions, newest first.

        `status` is a state or `pending` (waiting or queued); `job` is a name or an id. `since` and `until` limit the
        time of submission. Large params and results are left out. A page may be short, even empty, while `nextCursor`
        says that more follow.
        """
        above = None if parent is None else execution_ref(parent)
        low = lowest_parcel(since)
        wanted = ExecutionFilter(
            states=_states(status),
            job=None if job is None else (await find_job(self._store, namespace, job)).job.id,
            queue=queue,
            parent=above,
            tag=tag_ref(tag),
            worker=worker,
            low=low if above is None else max(low, first_id_at(instant_of(above) - APART)),
        )
        before = start_place(until, cursor)
        page = lists.page if above is None else child_lists.page
        check_limit(limit)
        found, following = await self._store.read(lambda: lists.read(page(namespace, wanted, before, limit), namespace))
        return Page(items=await self.views(namespace, found), next_cursor=following and make_cursor(following))

    async def views(
        self, namespace: int, found: Sequence[reads.FoundExecution], *, brief: bool = True
    ) -> "list_of[ExecutionView]":
        """Return the views of executions, each with a hint if something keeps it from running."""
        queued = any(f.execution.state == QUEUED for f in found)
        offers = await self._store.read(lambda: reads.offers(namespace)) if queued else []
        depending = any(f.execution.state == WAITING and f.execution.reason == "dependency" for f in found)
        waits = await self._waits(found) if depending else {}

        def hint(f: reads.FoundExecution) -> str | None:
            if f.execution.state in PENDING and f.job_state == "paused":
                return f"The job is paused; resume it with `horae jobs resume {f.job_name}`."
            if f.execution.state == WAITING and f.execution.id in waits:
                return waits[f.execution.id]
            if f.execution.state == WAITING and f.execution.reason == "overlap":
                return OVERLAP
            if f.execution.state == WAITING and f.execution.reason in EXPLAINED:
                return f"{BY_REASON[f.execution.reason].means} `horae explain {f.execution.id}` says more."
            if f.execution.state != QUEUED or f.queue_name is None:
                return None
            held = self._held(namespace, f.execution.queue, f.queue_name)
            return held or why_queued(f.queue_name, f.needs, offers, f.execution.losses)

        return [
            show_execution(
                f.execution, job_name=f.job_name, queue=f.queue_name, hint=hint(f), brief=brief, traced=self._traced
            )
            for f in found
        ]

    async def find(self, namespace: int, ref: str | UUID) -> reads.FoundExecution:
        """Return an execution as it is stored. Raises NotFound, or Gone when its id is older than the retention."""
        execution_id = execution_ref(ref)
        found = await self._found.get((namespace, execution_id))
        if found is None:
            oldest, begun = await self._store.read(reads.oldest)
            retention = Retention(self._retention, await self._store.read(namespaces.retentions))
            raise no_such_execution(execution_id, self._env.now(), retention.shortest_of(namespace), oldest, begun)
        return found


list_of = list  # inside the class, `list` is its method


def _latest(execution: Execution) -> list[AttemptView]:
    """Return the attempt that is not among the stored attempts: the one that runs, or the one that succeeded."""
    runs = execution.state == RUNNING and execution.session is not None
    if not runs and execution.state != SUCCESS:
        return []
    return [
        AttemptView(
            attempt=execution.attempt,
            worker_id=execution.worker,
            outcome=execution.state,
            started_at=shown_time(execution.started_at),
            ended_at=shown_time(execution.completed_at),
            exit_code=execution.exit_code,
        )
    ]


def _states(status: str | None) -> frozenset[str] | None:
    if status is None:
        return None
    if status == "pending":
        return frozenset(PENDING)
    if status not in STATES:
        raise BadInput(f"{status[:40]!r} is not a status.", _STATUS, field="status")
    return frozenset({status})


def lowest_parcel(since: TimeBound) -> UUID:
    """Return the lowest parcel id that a list may show."""
    at = time_bound(since, "since")
    return FIRST if at is None else first_id_at(at)


def start_place(until: TimeBound, cursor: str | None) -> Place:
    """Return the position where a list begins: at its cursor, before an instant, or at the newest execution."""
    if cursor is not None:
        return read_cursor(cursor, tuple[UUID, Count])
    at = time_bound(until, "until")
    return END if at is None else (first_id_at(at), 0)
