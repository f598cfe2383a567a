"""Erasing a tenant: all that it holds, and if asked what is defined in it, too.

It goes part by part, each for some seconds and in small transactions; a part begins with what the one before left, so
that whoever is killed in between just asks again. Only what came before the erasure began is meant: what a schedule
makes meanwhile is not. What has not ended is refused, or cancelled if asked.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from uuid import UUID

import structlog

from horae.engine.definitions.jobs import Jobs
from horae.engine.tenancy.keys import ApiKeys
from horae.engine.tenancy.namespaces import Namespaces
from horae.env import Env, Instant
from horae.errors import BadInput, Conflict, Forbidden
from horae.features.archive.engine.reader import ArchiveReader
from horae.features.erasure.engine.namespace_ends import NamespaceCanceller
from horae.features.erasure.model import EraseNamespace, NamespaceErasureView
from horae.features.erasure.store import namespace_data, namespace_rows
from horae.features.erasure.store.ended import erase_ended
from horae.model.base.ids import first_id_at
from horae.model.base.instant import format_instant
from horae.model.tenancy.namespace import DEFAULT_NAMESPACE, Namespace
from horae.model.tenancy.principal import Principal
from horae.store.contract import Store
from horae.store.expiry.expiry import START
from horae.store.script import Script
from horae.store.tenancy.holdings import Batch, all_holdings

SPAN = 10.0  # seconds that one part takes
BATCH = 500  # rows of a table in one transaction
log = structlog.get_logger("horae.engine")


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

    async def erase(self, who: Principal, name: str, asked: EraseNamespace) -> NamespaceErasureView:
        """Erase for some seconds. Raises BadInput, NotFound, Forbidden, and Conflict while something is under way."""
        found = await self._namespaces.find(who, name)
        if asked.confirm != found.name:
            remedy = f'Erasing cannot be undone: repeat the name, as {{"confirm": "{found.name}"}}.'
            raise BadInput("The name that confirms it is another one.", remedy, field="confirm")
        now = self._env.now()
        before = now + 1 if asked.definitions else now if asked.before is None else min(asked.before, now)
        if asked.definitions:
            _may_end(who, found)
        if not asked.cancel:
            await self._refuse_live(found, before)
        if asked.definitions:
            await self._close(found)
        part = _Part(self._env, self._store)
        if asked.definitions:
            await self._delete_jobs(found, part)
        live = await self._end_live(found, before, part) if asked.cancel else 0
        done = await self._erase_data(found, before, part) and not live
        if done and asked.definitions:
            done = await self._erase_definitions(found, part)
        log.info("namespace erased" if done else "part of a namespace erased", namespace=name, **part.counts)
        return NamespaceErasureView(
            namespace=found.name, before=format_instant(min(before, now)), live=live, done=done, **part.counts
        )

    async def _refuse_live(self, found: Namespace, before: Instant) -> None:
        live = await self._ends.live(found.id, before)
        beside = await self._ends.under_way(found.id, before)
        counts = {"execution": live, **{kind.noun: len(ids) for kind, ids in beside}}
        told = [f"{count:,} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
        if told:
            remedy = f"Wait until they have ended, or cancel them: `horae namespaces erase {found.name} --cancel`."
            raise Conflict(f'Namespace "{found.name}" has {", ".join(told)} that have not ended.', remedy)

    async def _close(self, found: Namespace) -> None:
        """From here on nobody comes in by a credential of this namespace."""
        workers = await self._store.change(lambda now: namespace_rows.close(found.id, now))
        if workers:
            those = "a worker" if workers == 1 else f"{workers:,} workers"
            remedy = "Stop them first: `horae workers drain`, then end their processes."
            raise Conflict(f'Namespace "{found.name}" has {those}.', remedy)
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
        """Cancel what has not ended; how many have not after that."""
        for kind, ids in await self._ends.under_way(found.id, before):
            for id in ids:
                await self._store.change(partial(kind.cancel, id, found.id))
        await self._ends.cancel(found.id, before, lambda: part.goes_on)
        return await self._ends.live(found.id, before)

    async def _erase_data(self, found: Namespace, before: Instant, part: "_Part") -> bool:
        """Erase what executions and whatever came with them left; whether that was all of it."""
        place: UUID | None = START
        while place is not None and part.goes_on:
            batch = erase_ended(found.id, place, first_id_at(before), BATCH)
            done = await self._store.write_slowly(batch)
            part.counts.update(executions=done.executions, files=done.files)
            place = done.next
        is_all = place is None and await self._erase_archive(found, before, part)
        for table, erase in (one for holdings in all_holdings() for one in holdings.counted.items()):
            is_all &= await part.repeat(table, partial(_erased, erase, found.id, before))
        is_all &= await part.repeat("records", partial(namespace_data.erase_records, found.id, before, BATCH))
        name: str | None = ""
        while name is not None and part.goes_on:
            step = partial(namespace_data.erase_paces, found.id, name, before, BATCH)
            gone, name = await self._store.write(step)
            part.counts.update(records=gone)
        return is_all and name is None

    async def _erase_archive(self, found: Namespace, before: Instant, part: "_Part") -> bool:
        """Remove the files of its archive; whether that was all of them."""
        while part.goes_on:
            gone, more = await self._archive.drop_some(found.id, before)
            part.counts.update(files=gone)
            if not more:
                return True
        return False

    async def _erase_definitions(self, found: Namespace, part: "_Part") -> bool:
        """Erase what is defined, and end the namespace; whether it has ended."""
        if await self._store.read(lambda: namespace_rows.jobs_left(found.id, 1)):
            return False
        if not await part.repeat("definitions", partial(namespace_rows.erase_rows, found.id, BATCH)):
            return False
        alive = await self._store.change(lambda now: namespace_rows.end(found.id, now))
        if alive is not None:  # came after all: the next part deals with it
            return False
        await self._namespaces.changed()
        return True


class _Part:
    """How long one part goes on, and what it erased."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._until = env.clock.monotonic() + SPAN
        self.counts: Counter[str] = Counter(executions=0, files=0, events=0, records=0, definitions=0)

    @property
    def goes_on(self) -> bool:
        return self._env.clock.monotonic() < self._until

    async def repeat(self, what: str, batch: Callable[[], Script[tuple[int, bool]]]) -> bool:
        """Erase batch after batch; whether that was all."""
        more = True
        while more and self.goes_on:
            gone, more = await self._store.write(batch)
            self.counts[what] += gone
            await self._env.clock.sleep(0)
        return not more


def _erased(batch: Batch, namespace: int, before: Instant) -> Script[tuple[int, bool]]:
    gone = yield from batch(namespace, before, BATCH)
    return gone, gone == BATCH


def _may_end(who: Principal, found: Namespace) -> None:
    if not who.may("installation"):
        remedy = 'Erase what is in it without "definitions", or ask who has the permission "installation".'
        raise Forbidden("A namespace does not end itself.", remedy)
    if found.name == DEFAULT_NAMESPACE:
        remedy = "Erase what is in it without `--definitions`, and delete its jobs."
        raise Conflict("The first namespace stays.", remedy)
