"""Operations on dead letters (executions that failed for good): list, retry as new executions, discard."""

from collections.abc import Sequence
from typing import Literal, Protocol, Unpack
from uuid import UUID

from msgspec import structs

from horae.engine.base.refs import execution_ref, find_job
from horae.engine.executions.executions import Executions, start_place
from horae.env import Env
from horae.errors import Conflict, NotFound
from horae.features.dead_letters.engine.filters import LetterFilterFields, filter_of, place_of, read_filter
from horae.features.dead_letters.engine.groups import MOST_COUNTED, MOST_GROUPED, MOST_GROUPS, gather, show
from horae.features.dead_letters.engine.retries import Params, Retries, SubmitMany
from horae.features.dead_letters.model import BulkView, DeadLetterGroups, DeadLetterView, FailedStepView, LetterFilter
from horae.model.base.cursor import check_limit, make_cursor
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.view import Page, shown_time
from horae.model.executions.execution import FAILED, Execution
from horae.model.executions.execution_view import ExecutionView
from horae.model.executions.show_execution import show_error
from horae.model.workflows.decisions.workflow import StepRow
from horae.store.contract import Store
from horae.store.executions.leaving import dead_letters as moves
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads import execution_reads as reads
from horae.store.executions.reads.execution_lists import DeadLetterMark, Place
from horae.store.workflows import reads as workflow_reads
from horae.store.workflows import rows as workflow_rows

MOST_AT_ONCE = 10_000  # the highest limit of one bulk action
MOST_STEPS = 20  # the most failed steps that are shown with a dead letter
BATCH = 256  # the most dead letters of a bulk action that are read and submitted together
list_of = list  # another name for `list`, because the class has a method `list`


class DeadLetters:
    """The operations on dead letters."""

    def __init__(self, env: Env, store: Store, submit: SubmitMany, executions: Executions) -> None:
        self._env, self._store, self._retries = env, store, Retries(store, submit)
        self._executions = executions

    async def get(self, namespace: int, execution: str | UUID) -> DeadLetterView:
        """Return a dead letter. Raises NotFound if the execution has not failed."""
        return await self._shown(namespace, await self._letter(namespace, execution))

    async def retry(
        self, namespace: int, execution: str | UUID, *, caller: str = "", params: Params = None
    ) -> DeadLetterView:
        """Submit a dead letter again as a new execution of the job's current version.

        `params` is a patch of its params. A second retry finds and returns the same new execution by the mark of the
        dead letter, or by the key of the execution, which names the dead letter.
        """
        (view,) = await self.retry_each(namespace, [execution], caller=caller, params=params)
        return view

    async def retry_each(
        self, namespace: int, executions: Sequence[str | UUID], *, caller: str = "", params: Params = None
    ) -> "list_of[DeadLetterView]":
        """Retry these dead letters; if one of them is unknown or its job is deleted, retry none."""
        found = [await self._letter(namespace, execution) for execution in executions]
        marks = await self._marks([f.execution.id for f in found])
        fresh = [f for f in found if not _is_retried(marks.get(f.execution.id))]
        for f in fresh:
            await self._refuse_deleted(namespace, f)
        for f in fresh:
            await self._retries.retry(namespace, [f.execution], caller, params)
        return [await self._shown(namespace, f) for f in found]

    async def discard(self, namespace: int, execution: str | UUID) -> DeadLetterView:
        """Mark a dead letter as discarded; it can still be read. Raises Conflict if it was retried."""
        (view,) = await self.discard_each(namespace, [execution])
        return view

    async def discard_each(self, namespace: int, executions: Sequence[str | UUID]) -> "list_of[DeadLetterView]":
        """Discard these dead letters; if one of them is unknown or was retried, discard none."""
        found = [await self._letter(namespace, execution) for execution in executions]
        for view in [await self._shown(namespace, f) for f in found]:
            _refuse_retried(view)
        await self._mark(moves.DISCARDED, [(f.execution.id, None) for f in found])
        views = [await self._shown(namespace, f) for f in found]
        for view in views:
            _refuse_retried(view)
        return views

    async def retry_many(
        self,
        namespace: int,
        *,
        limit: int = 1000,
        cursor: str | None = None,
        caller: str = "",
        params: Params = None,
        **which: Unpack[LetterFilterFields],
    ) -> BulkView:
        """Retry the matching open dead letters, newest first. Dead letters of deleted jobs are skipped."""

        async def act(batch: Sequence[Execution]) -> tuple[list_of[UUID], list_of[str]]:
            return await self._retries.retry_each(namespace, batch, caller, params)

        return await self._bulk(namespace, which, limit, cursor, act)

    async def discard_many(
        self, namespace: int, *, limit: int = 1000, cursor: str | None = None, **which: Unpack[LetterFilterFields]
    ) -> BulkView:
        """Discard the matching open dead letters, newest first."""

        async def act(batch: Sequence[Execution]) -> tuple[list_of[UUID], list_of[str]]:
            await self._mark(moves.DISCARDED, [(e.id, None) for e in batch])
            return [e.id for e in batch], []

        return await self._bulk(namespace, which, limit, cursor, act)

    async def groups(
        self, namespace: int, *, state: str = "open", **which: Unpack[LetterFilterFields]
    ) -> DeadLetterGroups:
        """Count dead letters by job and error type; each group has the newest of its dead letters as an example."""
        letters = await self.read(namespace, which)
        wanted = filter_of(letters, state)
        groups, is_all = await gather(self._store, namespace, wanted, _start(letters, None), MOST_GROUPED)
        until = self._env.now() if letters.until is None else min(letters.until, self._env.now())
        view = await show(self._store, namespace, groups[:MOST_GROUPS], wanted.mark, letters.since, until)
        return structs.replace(view, complete=is_all and len(groups) <= MOST_GROUPS)

    async def list(
        self,
        namespace: int,
        *,
        state: str = "open",
        limit: int = 50,
        cursor: str | None = None,
        **which: Unpack[LetterFilterFields],
    ) -> Page[DeadLetterView]:
        """Return a page of dead letters, newest first; `state` is open, retried, discarded or all."""
        check_limit(limit)
        letters = await self.read(namespace, which)
        wanted, before = filter_of(letters, state), _start(letters, cursor)
        found, following = await self._store.read(
            lambda: lists.read(lists.page(namespace, wanted, before, limit), namespace)
        )
        marks = await self._marks([f.execution.id for f in found])
        views = await self._executions.views(namespace, found)
        steps = await self._failed_steps([view.execution_id for view in views])
        items = [_letter(view, marks.get(view.execution_id), steps.get(view.execution_id)) for view in views]
        return Page(items=items, next_cursor=following and make_cursor(following))

    async def _letter(self, namespace: int, ref: str | UUID) -> reads.FoundExecution:
        letter_id = execution_ref(ref)
        found = await self._store.read(lambda: reads.by_id(letter_id, namespace))
        if found is None:
            await self._executions.get(namespace, letter_id)  # raises the precise error if it is unknown or expired
            raise NotFound(f"There is no execution {letter_id}.", "List dead letters with `horae dlq list`.")
        if found.execution.state != FAILED:
            detail = f"Execution {letter_id} is {found.execution.state}, not failed."
            raise NotFound(detail, "Only failed executions are dead letters; list them with `horae dlq list`.")
        if found.execution.extra.step is not None:
            root = await self._root(found.execution)
            detail = f'Execution {letter_id} is the step "{found.execution.extra.step}" of the workflow {root}.'
            remedy = f"Retry the workflow from its failed steps: `horae dlq retry {root}`."
            raise NotFound(detail, remedy, workflow=str(root))
        return found

    async def _root(self, step: Execution) -> UUID:
        """Return the execution of the outermost workflow that contains a step."""
        parent = step.parent or step.id
        known = await self._store.read(lambda: workflow_rows.workflows_of([parent]))
        return known[parent].workflow.root if parent in known else parent

    async def _failed_steps(self, ids: Sequence[UUID]) -> "dict[UUID, list_of[StepRow]]":
        return await self._store.read(lambda: workflow_reads.failed_steps(ids))

    async def _shown(self, namespace: int, found: reads.FoundExecution) -> DeadLetterView:
        (view,) = await self._executions.views(namespace, [found], brief=False)
        steps = await self._failed_steps([view.execution_id])
        return _letter(view, await self._mark_of(view.execution_id), steps.get(view.execution_id))

    async def _mark_of(self, letter_id: UUID) -> DeadLetterMark | None:
        return (await self._marks([letter_id])).get(letter_id)

    async def _marks(self, ids: Sequence[UUID]) -> dict[UUID, DeadLetterMark]:
        spans = [(parcel_of(letter_id), index_of(letter_id), index_of(letter_id) + 1) for letter_id in ids]
        found = await self._store.read(lambda: lists.marks(spans))
        return {execution_id(parcel, item): mark for (parcel, item), mark in found.items()}

    async def _mark(self, kind: str, letters: Sequence[tuple[UUID, UUID | None]]) -> None:
        await self._store.change(lambda now: moves.mark(kind, letters, now))

    async def read(self, namespace: int, which: LetterFilterFields) -> LetterFilter:
        """Convert the filter of a request."""
        return await read_filter(self._env, self._store, namespace, which)

    async def count(self, namespace: int, letters: LetterFilter) -> int | None:
        """Count the matching open dead letters; return None if there are too many to count."""
        groups, is_all = await gather(self._store, namespace, filter_of(letters), _start(letters, None), MOST_COUNTED)
        return sum(group.count for group in groups) if is_all else None

    async def replay(
        self, namespace: int, letters: LetterFilter, place: Place, limit: int, *, caller: str, params: Params
    ) -> "tuple[Place | None, tuple[int, int, int], list_of[str]]":
        """Retry up to `limit` open dead letters that precede a place.

        Return the place to continue from (None at the end), the counts (matched, retried, skipped), and the reasons
        why some were skipped.
        """
        wanted = filter_of(letters)
        found, following = await self._store.read(
            lambda: lists.read(lists.page(namespace, wanted, place, limit), namespace, whole=True)
        )
        made, notes = await self._retries.retry_each(namespace, [f.execution for f in found], caller, params)
        return following, (len(found), len(made), len(found) - len(made)), notes

    async def _bulk(
        self, namespace: int, which: LetterFilterFields, limit: int, cursor: str | None, act: "Act"
    ) -> BulkView:
        """Apply `act` to up to `limit` open dead letters in batches, beginning with the newest or at the cursor.

        The cursor of the result continues with older ones. So a retried execution that fails again is not retried
        again, and skipped dead letters, which stay open, are not processed twice.
        """
        check_limit(limit, MOST_AT_ONCE)
        letters = await self.read(namespace, which)
        wanted = filter_of(letters)
        place: Place | None = _start(letters, cursor)
        matched, done, notes = 0, list_of[UUID](), list_of[str]()
        while place is not None and matched < limit:
            before, room = place, min(BATCH, limit - matched)
            found, place = await self._store.read(
                lambda: lists.read(lists.page(namespace, wanted, before, room), namespace, whole=True)  # noqa: B023
            )
            ids, said = await act([f.execution for f in found])
            matched, done = matched + len(found), done + ids
            notes += [note for note in said if note not in notes]
        return BulkView(
            matched=matched,
            done=len(done),
            skipped=matched - len(done),
            more=place is not None,
            next_cursor=place and make_cursor(place),
            execution_ids=done,
            notes=notes,
        )

    async def _refuse_deleted(self, namespace: int, found: reads.FoundExecution) -> None:
        job = (await find_job(self._store, namespace, found.execution.job)).job
        if job.state == "deleted":
            raise Conflict(f'Job "{job.name}" is deleted.', f"Restore it first: `horae jobs restore {job.id}`.")


def _start(letters: LetterFilter, cursor: str | None) -> Place:
    return place_of(letters.until) if cursor is None else start_place(None, cursor)


def _is_retried(mark: DeadLetterMark | None) -> bool:
    return mark is not None and mark.kind == moves.RETRIED


def _refuse_retried(view: DeadLetterView) -> None:
    if view.state == "retried":
        detail = f"Execution {view.execution.execution_id} was already retried as {view.retried_as}."
        remedy = "It need not be discarded, because it is no longer open."
        raise Conflict(detail, remedy, retriedAs=str(view.retried_as))


class Act(Protocol):
    """The action on one batch of a bulk operation; it returns the ids of created or changed executions, and notes."""

    async def __call__(self, batch: Sequence[Execution]) -> tuple[list_of[UUID], list_of[str]]: ...


def _letter(view: ExecutionView, mark: DeadLetterMark | None, rows: Sequence[StepRow] | None) -> DeadLetterView:
    steps = [
        FailedStepView(step=row.step, execution_id=row.execution, error=show_error(row.error, brief=True))
        for row in (rows or ())[:MOST_STEPS]
    ]
    if mark is None:
        return DeadLetterView(execution=view, steps=steps)
    state: Literal["retried", "discarded"] = "retried" if mark.kind == moves.RETRIED else "discarded"
    return DeadLetterView(
        execution=view, state=state, retried_as=mark.execution, marked_at=shown_time(mark.at), steps=steps
    )
