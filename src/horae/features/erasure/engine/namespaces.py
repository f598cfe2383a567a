"""Erasure of a tenant: all data in a namespace and, on request, its definitions.

Each request erases one part, for some seconds and in small transactions. It continues with the data that earlier parts
left, so that a client can simply repeat an interrupted request. Only data from before the start of the erasure is
erased; executions that a schedule starts meanwhile stay. While executions are live, the erasure is refused, or they are
cancelled on request.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from uuid import UUID

import structlog

from horae.engine.definitions.jobs import Jobs
from horae.engine.executions.outcomes import Outcomes
from horae.engine.tenancy.keys import ApiKeys
from horae.engine.tenancy.namespaces import Namespaces
from horae.env import Env, Instant
from horae.errors import BadInput, Conflict, Forbidden
from horae.features.archive.engine.reader import ArchiveReader, is_erased
from horae.features.erasure.model import EraseNamespace, NamespaceErasureView
from horae.features.erasure.store import namespace_end, namespace_rows
from horae.features.erasure.store.namespace_rows import erase_ended
from horae.model.base.ids import first_id_at, index_of, parcel_of
from horae.model.base.instant import format_instant
from horae.model.tenancy.namespace import DEFAULT_NAMESPACE, Namespace
from horae.model.tenancy.principal import Principal
from horae.store.contract import Store
from horae.store.executions.leaving.cancel_job import START, CancelBatch
from horae.store.expiry.expiry import FIRST_ID
from horae.store.script import Script
from horae.store.tenancy.holdings import EraseBatch, PendingWork, all_holdings
from horae.store.triggers.dependencies.starts import Consequences

REASON = "the namespace is being erased"
PART_SECONDS = 10.0  # the most seconds of one part
BATCH = 500  # rows of a table, or slices, in one transaction
log = structlog.get_logger("horae.engine")


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


class NamespaceErasures:
    """Erases namespaces."""

    def __init__(
        self,
        env: Env,
        store: Store,
        namespaces: Namespaces,
        jobs: Jobs,
        keys: ApiKeys,
        ends: NamespaceCanceller,
        archive: ArchiveReader,
    ) -> None:
        self._env, self._store, self._namespaces, self._jobs = env, store, namespaces, jobs
        self._keys, self._ends, self._archive = keys, ends, archive

    async def erase(self, caller: Principal, name: str, request: EraseNamespace) -> NamespaceErasureView:
        """Erase one part of a namespace's data, for some seconds.

        Raises BadInput, NotFound, Forbidden, and Conflict while executions or workers are live.
        """
        found = await self._namespaces.find(caller, name)
        if request.confirm != found.name:
            remedy = f'Repeat the name, because erasing cannot be undone: {{"confirm": "{found.name}"}}.'
            raise BadInput("`confirm` is not the name of the namespace.", remedy, field="confirm")
        now = self._env.now()
        before = now + 1 if request.definitions else now if request.before is None else min(request.before, now)
        if request.definitions:
            _may_end(caller, found)
        if not request.cancel:
            await self._refuse_live(found, before)
        if request.definitions:
            await self._close(found)
        part = _Part(self._env, self._store)
        if request.definitions:
            await self._delete_jobs(found, part)
        live = await self._end_live(found, before, part) if request.cancel else 0
        done = await self._erase_data(found, before, part) and not live
        if done and request.definitions:
            done = await self._erase_definitions(found, part)
        log.info("namespace erased" if done else "part of a namespace erased", namespace=name, **part.counts)
        return NamespaceErasureView(
            namespace=found.name, before=format_instant(min(before, now)), live=live, complete=done, **part.counts
        )

    async def _refuse_live(self, found: Namespace, before: Instant) -> None:
        live = await self._ends.live(found.id, before)
        beside = await self._ends.under_way(found.id, before)
        counts = {"execution": live, **{kind.noun: len(ids) for kind, ids in beside}}
        counted = [f"{count:,} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
        if counted:
            remedy = f"Wait until they have ended, or cancel them: `horae namespaces erase {found.name} --cancel`."
            raise Conflict(f'Namespace "{found.name}" has {", ".join(counted)} that have not ended.', remedy)

    async def _close(self, found: Namespace) -> None:
        """Revoke the keys of a namespace, and refuse new jobs in it. Raises Conflict while it has workers."""
        workers = await self._store.change(lambda now: namespace_rows.close(found.id, now))
        if workers:
            shown = "a worker" if workers == 1 else f"{workers:,} workers"
            remedy = "Stop them first: `horae workers drain`, then end their processes."
            raise Conflict(f'Namespace "{found.name}" has {shown}.', remedy)
        self._keys.forget()

    async def _delete_jobs(self, found: Namespace, part: "_Part") -> None:
        while part.goes_on:
            left = await self._store.read(lambda: namespace_rows.jobs_left(found.id, BATCH))
            if not left:
                return
            for job in left:
                if part.goes_on:
                    await self._jobs.delete(found.id, job, queued="cancel", running="cancel", force=True)

    async def _end_live(self, found: Namespace, before: Instant, part: "_Part") -> int:
        """Cancel live executions, and return the number of those that have not ended yet."""
        for kind, ids in await self._ends.under_way(found.id, before):
            for work in ids:
                await self._store.change(partial(kind.cancel, work, found.id))
        await self._ends.cancel(found.id, before, lambda: part.goes_on)
        return await self._ends.live(found.id, before)

    async def _erase_data(self, found: Namespace, before: Instant, part: "_Part") -> bool:
        """Erase executions and other records from before an instant; return whether all of them were erased."""
        place: UUID | None = FIRST_ID
        while place is not None and part.goes_on:
            batch = erase_ended(found.id, place, first_id_at(before), BATCH)
            done = await self._store.write_slowly(batch)
            part.counts.update(executions=done.executions, files=done.files)
            place = done.next
        is_all = place is None and await self._erase_archive(found, before, part)
        for table, erase in (one for holdings in all_holdings() for one in holdings.counted.items()):
            is_all &= await part.repeat(table, partial(_erased, erase, found.id, before))
        is_all &= await part.repeat("records", partial(namespace_rows.erase_records, found.id, before, BATCH))
        name: str | None = ""
        while name is not None and part.goes_on:
            step = partial(namespace_rows.erase_paces, found.id, name, before, BATCH)
            gone, name = await self._store.write(step)
            part.counts.update(records=gone)
        return is_all and name is None

    async def _erase_archive(self, found: Namespace, before: Instant, part: "_Part") -> bool:
        """Remove files from the archive, and erase data from files that also have later executions.

        Return whether nothing is left. The records of executions in files with later executions stay.
        """
        more = True
        while more and part.goes_on:
            gone, more = await self._archive.drop_some(found.id, before)
            part.counts.update(files=gone)
        if more:
            return False
        low, unread = first_id_at(before), set[str]()
        is_older = lambda one: one.execution_id < low and not is_erased(one)  # noqa: E731
        erased = await self._archive.erase(found.id, is_older, unread, since=before, until=before)
        part.counts.update(executions=len(erased))
        return not unread

    async def _erase_definitions(self, found: Namespace, part: "_Part") -> bool:
        """Erase the definitions and end the namespace; return whether it has ended."""
        if await self._store.read(lambda: namespace_rows.jobs_left(found.id, 1)):
            return False
        if not await part.repeat("definitions", partial(namespace_rows.erase_rows, found.id, BATCH)):
            return False
        alive = await self._store.change(lambda now: namespace_rows.end(found.id, now))
        if alive is not None:  # new jobs or executions were added meanwhile; the next part erases them
            return False
        await self._namespaces.reload()
        return True


class _Part:
    """One part of an erasure: its time limit, and the numbers of rows that it has erased, by kind."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._until = env.clock.monotonic() + PART_SECONDS
        self.counts: Counter[str] = Counter(executions=0, files=0, events=0, records=0, definitions=0)

    @property
    def goes_on(self) -> bool:
        return self._env.clock.monotonic() < self._until

    async def repeat(self, kind: str, batch: Callable[[], Script[tuple[int, bool]]]) -> bool:
        """Erase batches of one kind until the part's time is over; return whether nothing is left."""
        more = True
        while more and self.goes_on:
            gone, more = await self._store.write(batch)
            self.counts[kind] += gone
            await self._env.clock.sleep(0)
        return not more


def _erased(batch: EraseBatch, namespace: int, before: Instant) -> Script[tuple[int, bool]]:
    gone = yield from batch(namespace, before, BATCH)
    return gone, gone == BATCH


def _may_end(caller: Principal, found: Namespace) -> None:
    if not caller.may("installation"):
        remedy = 'Erase only its data, without "definitions", or ask a user with the permission "installation".'
        raise Forbidden('Erasing a namespace with "definitions" needs the permission "installation".', remedy)
    if found.name == DEFAULT_NAMESPACE:
        remedy = "Erase only its data, without `--definitions`, and delete its jobs."
        raise Conflict("The default namespace cannot be erased with its definitions.", remedy)
