"""The history of a failure: a dead letter, the executions that run it again, and their own dead letters."""

from uuid import UUID

from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import FAILED, Execution
from horae.store.contract import Store
from horae.store.executions.leaving.dead_letters import RETRIED
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads import execution_reads as reads

MOST_STEPS = 100  # links of one history that are followed


async def dead_letter_of(store: Store, execution: Execution) -> UUID | None:
    """Return the open dead letter that a new run of an execution closes, or None.

    A cancelled rerun leads back to the letter that it was meant to close. The letter of a failure that was run again
    and failed again is already closed: the newest letter of its history is returned instead.
    """
    at: Execution | None = execution
    for _ in range(MOST_STEPS):
        if at is None or at.extra.step is not None:
            return None
        if at.state != FAILED:
            at = await _read(store, at.namespace, at.extra.retry_of)
            continue
        again = await _run_again_as(store, at.id)
        if again is None:
            return at.id
        at = await _read(store, at.namespace, again)
        if at is None or at.state != FAILED:
            return None
    return None


async def _read(store: Store, namespace: int, wanted: UUID | None) -> Execution | None:
    found = None if wanted is None else await store.read(lambda: reads.by_id(wanted, namespace))
    return None if found is None else found.execution


async def _run_again_as(store: Store, execution: UUID) -> UUID | None:
    span = parcel_of(execution), index_of(execution), index_of(execution) + 1
    mark = (await store.read(lambda: lists.marks([span]))).get(span[:2])
    return mark.execution if mark is not None and mark.kind == RETRIED else None
