"""Cancel all executions and other work of a namespace that is to be erased, in batches."""

from collections.abc import Callable
from uuid import UUID

from horae.engine.executions.outcomes import Outcomes
from horae.env import Instant
from horae.features.erasure.store import namespace_end
from horae.model.base.ids import first_id_at, index_of, parcel_of
from horae.store.contract import Store
from horae.store.executions.leaving.cancel_job import START, CancelBatch
from horae.store.tenancy.holdings import PendingWork, all_holdings
from horae.store.triggers.dependencies.starts import Consequences

BATCH = 500
REASON = "the namespace is being erased"


class NamespaceCanceller:
    """Cancels waiting and queued executions of a namespace, and requests workers to stop running ones."""

    def __init__(self, store: Store, outcomes: Outcomes) -> None:
        self._store, self._outcomes = store, outcomes

    async def live(self, namespace: int, before: Instant) -> int:
        """Count executions that were submitted before an instant and have not ended."""
        return await self._store.read(lambda: namespace_end.live(namespace, first_id_at(before)))

    async def under_way(self, namespace: int, before: Instant) -> list[tuple[PendingWork, list[UUID]]]:
        """Return the ids of unfinished backfills, replays and other work that submits executions, by kind."""
        kinds = [holdings.under_way for holdings in all_holdings() if holdings.under_way is not None]
        return [
            (kind, await self._store.read(lambda: namespace_end.under_way(kind, namespace, before)))  # noqa: B023
            for kind in kinds
        ]

    async def cancel(self, namespace: int, before: Instant, goes_on: Callable[[], bool]) -> None:
        """Cancel executions that were submitted before an instant and have not ended, until `goes_on` returns False."""
        low = first_id_at(before)
        for execution in await self._store.read(lambda: namespace_end.workflows(namespace, low, BATCH)):
            if goes_on():
                await self._store.cancel(parcel_of(execution), index_of(execution), REASON)
        for shelf in namespace_end.PENDING:
            batch = CancelBatch(0, START)
            while batch.next is not None and goes_on():
                batch = await self._some(shelf, namespace, batch.next, low)
        for session in await self._store.read(lambda: namespace_end.sessions(namespace, low)):
            await self._store.change(
                lambda now: namespace_end.ask_session(session, namespace, low, REASON, now)  # noqa: B023
            )
            self._outcomes.publish_request(session)

    async def _some(self, shelf: str, namespace: int, after: tuple[UUID, int], low: UUID) -> CancelBatch:
        consequences, new_id = Consequences(), self._store.env.new_id
        batch = await self._store.change(
            lambda now: namespace_end.cancel_pending(
                shelf, namespace, new_id, after, low, BATCH, REASON, now, consequences
            )
        )
        self._store.started(consequences)
        return batch
