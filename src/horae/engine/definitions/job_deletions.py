"""The second part of a job's deletion: after the transaction that deletes the job, its executions end in batches."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from horae.engine.definitions.job_changes import DELETED
from horae.engine.executions.outcomes import Outcomes
from horae.env import Instant
from horae.store.contract import Store
from horae.store.executions.leaving import cancel_job
from horae.store.executions.leaving.cancel_job import START, CancelBatch, Place
from horae.store.script import Script
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel

BATCH = 500  # slices cancelled in one transaction


class JobDeletions:
    """Ends the executions of deleted jobs.

    A job's row records what is left to do, so any server can continue after a crash.
    """

    def __init__(
        self,
        store: Store,
        outcomes: Outcomes,
    ) -> None:
        self._store, self.outcomes = store, outcomes

    async def unfinished(self) -> list[UUID]:
        """Return the deleted jobs with executions that are still to be ended."""
        return await self._store.read(cancel_job.unfinished)

    async def finish(self, job: UUID) -> bool:
        """End the remaining executions.

        Return False when another transaction holds some of them, so that a later call must retry.
        """
        ending = await self._store.read(lambda: cancel_job.ending_of(job))
        if ending is None:
            return True
        if ending != "running" and not await self._cancel_pending(job):
            return False
        if ending != "pending":
            await self._ask_running(job)
            workflows = await self._store.read(lambda: cancel_job.workflows_of(job))
            if not all([await self._cancel_workflow(job, execution) for execution in workflows]):
                return False
            await self._walk(job, partial(cancel_job.cancel_asleep, job, self._store.env.new_id))
        # A worker may have handed executions back before it got the cancel request, or a timer may have woken some.
        if ending == "all" and await self._is_pending(job):
            return False
        await self._store.write(lambda: cancel_job.settle_deletion(job, ending))
        return True

    async def _cancel_workflow(self, job: UUID, execution: UUID) -> bool:
        """Cancel a workflow, unless its job was restored; return False when another transaction moves the workflow."""
        consequences, new_id = Consequences(), self._store.env.new_id

        def script(now: Instant) -> Script[bool]:
            if not (yield from cancel_job.is_stopping(job)):
                return True
            return (yield from workflow_cancel.cancel(execution, DELETED, new_id, now, consequences)) != "moving"

        cancelled = await self._store.change(script)
        self._store.started(consequences)
        return cancelled

    async def _cancel_pending(self, job: UUID) -> bool:
        for shelf in cancel_job.OF_JOB:
            await self._walk(job, partial(cancel_job.cancel_more, shelf, job, self._store.env.new_id))
        return not await self._is_pending(job)

    async def _is_pending(self, job: UUID) -> bool:
        return await self._store.read(lambda: cancel_job.is_pending(job))

    async def _walk(
        self, job: UUID, cancel: Callable[[Place, int, str, Instant, Consequences], Script[CancelBatch]]
    ) -> None:
        """Cancel batch after batch, and publish each batch's consequences at once."""
        batch = CancelBatch(0, START)
        while batch.next is not None:
            after, consequences = batch.next, Consequences()
            batch = await self._store.change(lambda now: cancel(after, BATCH, DELETED, now, consequences))  # noqa: B023
            self.outcomes.publish_cancelled(job, batch.items)
            self._store.started(consequences)

    async def _ask_running(self, job: UUID) -> None:
        for session in await self._store.read(lambda: cancel_job.sessions_of(job)):
            await self._store.change(lambda now: cancel_job.ask_session(session, job, DELETED, now))  # noqa: B023
            self.outcomes.publish_request(session)
