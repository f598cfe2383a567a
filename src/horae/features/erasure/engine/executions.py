"""Erasure of personal data: params, results, logs and files of executions, and of the executions that they submitted.

Each request erases one part, beginning with the newest executions, so that no request takes long. The audit log gets a
receipt of each part.
"""

from collections.abc import Iterable
from functools import partial
from uuid import UUID

from msgspec import Raw

from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.base.refs import find_job, tag_ref
from horae.engine.executions.executions import Executions, start_place
from horae.errors import HoraeError
from horae.features.archive.engine.reader import ArchiveReader
from horae.features.erasure.model import ErasureSelection, ErasureView
from horae.features.erasure.store import executions as erasure
from horae.model.base.cursor import check_limit, make_cursor
from horae.model.base.ids import index_of, instant_of, parcel_of
from horae.model.executions.execution import FINAL
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store
from horae.store.executions.reads import child_lists
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads.execution_lists import END, ExecutionFilter
from horae.store.executions.reads.execution_reads import FoundExecution

MAX_LISTED = 100  # an answer lists at most this many executions for each reason why they were not erased
CHILDREN = 500  # submitted executions (children) in a page


class Erasures:
    """Finds the selected executions and erases them."""

    def __init__(self, store: Store, executions: Executions, seals: ExecutionSealer, archive: ArchiveReader) -> None:
        self._store, self._executions, self._seals, self._archive = store, executions, seals, archive

    async def erase(self, namespace: int, selection: ErasureSelection, cursor: str | None, limit: int) -> ErasureView:
        """Check up to `limit` executions, from the cursor on, and erase the selected ones.

        The last part also erases archived executions. Raises BadInput and NotFound.
        """
        selection.check()
        job = None if selection.job is None else (await find_job(self._store, namespace, selection.job)).job.id
        wanted = ExecutionFilter(job=job, tag=tag_ref(selection.tag))
        place = start_place(None, cursor)
        check_limit(limit)
        found, following = await self._store.read(
            lambda: lists.read(lists.page(namespace, wanted, place, limit), namespace, whole=True)
        )
        selected, undecryptable = list[FoundExecution](), list[UUID]()
        for one in found:
            is_selected = self._is_selected(one, selection)
            if is_selected is None:
                undecryptable.append(one.execution.id)
            elif is_selected:
                selected.append(one)
        archived, files = set[UUID](), set[str]()
        if following is None:
            in_files = partial(self._is_archived, selection, undecryptable)
            archived = await self._archive.find(namespace, in_files, files)
        erased, live = await self._erase_all(namespace, selected, archived, files)
        return ErasureView(
            examined=len(found), erased=len(erased), not_ended=live[:MAX_LISTED],
            undecryptable=undecryptable[:MAX_LISTED], unreadable_files=sorted(files)[:MAX_LISTED],
            next_cursor=None if following is None else make_cursor(following),
        )  # fmt: skip

    def _is_selected(self, found: FoundExecution, selection: ErasureSelection) -> bool | None:
        """Return whether an execution is selected, or None if its params must be known but cannot be decrypted."""
        execution = found.execution
        if not selection.matches_key(execution.extra):
            return False
        if not selection.params:
            return True
        try:
            return selection.matches_params(self._seals.open_params(execution.job, execution.params))
        except HoraeError:
            return None

    async def _erase_all(
        self, namespace: int, selected: list[FoundExecution], archived: set[UUID], files: set[str]
    ) -> tuple[set[UUID], list[UUID]]:
        """Erase the selected executions of the store and of the archive, and those that they submitted, and so on.

        Return the ids of erased executions, and of those that have not ended. `files` collects the files that cannot be
        read. The selected executions are erased last: if the erasure is interrupted, a repetition still finds them, and
        with them the executions that they submitted.
        """
        chosen = archived | {one.execution.id for one in selected}
        erased, live, parents, known = set[UUID](), list[UUID](), chosen, set(chosen)
        while parents:
            stored = await self._submitted_by(namespace, parents)
            below = {one.execution.id for one in stored}
            erased |= await self._erase_stored(stored, live)
            found = await self._erase_archived(namespace, below, parents | below, files)
            erased |= found
            known |= below
            parents = found - known
            known |= parents
        erased |= await self._erase_stored(selected, live)
        erased |= await self._erase_archived(namespace, chosen, set(), files)
        # Executions that moved to the archive meanwhile were not erased in the store, but in the archive.
        return erased, [one for one in dict.fromkeys(live) if one not in erased]

    async def _erase_archived(
        self, namespace: int, executions: set[UUID], parents: set[UUID], files: set[str]
    ) -> set[UUID]:  # fmt: skip
        """Erase these executions in the archive, and those that the `parents` submitted; return the ids of all.

        Call this after the erasure in the store, because executions may move to the archive meanwhile.
        """
        named = executions | parents
        if not named:
            return set()
        is_meant = lambda one: one.execution_id in executions or one.parent in parents  # noqa: E731
        return await self._archive.erase(namespace, is_meant, files, since=min(map(instant_of, named)))

    def _is_archived(self, selection: ErasureSelection, undecryptable: list[UUID], view: ExecutionView) -> bool:
        """Return whether an archived execution is selected.

        If its params must be known but cannot be decrypted, return False and add the execution to `undecryptable`.
        """
        if selection.job not in (None, view.job_name, str(view.job_id)) or selection.key not in (None, view.key):
            return False
        tag = tag_ref(selection.tag)
        if tag is not None and (tag[0] not in view.tags or tag[1] not in (None, view.tags[tag[0]])):
            return False
        if not selection.params:
            return True
        try:
            return isinstance(view.params, Raw) and selection.matches_params(
                self._seals.open_params(view.job_id, view.params)
            )
        except HoraeError:
            undecryptable.append(view.execution_id)
            return False

    async def _erase_stored(self, found: Iterable[FoundExecution], live: list[UUID]) -> set[UUID]:
        """Erase these executions and return the ids of those erased; add the others, which are live, to `live`."""
        erased = set[UUID]()
        for one in (each.execution for each in found):
            place = parcel_of(one.id), index_of(one.id)
            if one.state in FINAL and await self._store.write(lambda: erasure.erase(*place)):  # noqa: B023
                erased.add(one.id)
            else:
                live.append(one.id)
        return erased

    async def _submitted_by(self, namespace: int, parents: Iterable[UUID]) -> list[FoundExecution]:
        """Return the executions in the store that these submitted, those that they submitted, and so on."""
        found, above = list[FoundExecution](), list(parents)
        while above:
            below = await self._children(namespace, above.pop())
            found += below
            above += [one.execution.id for one in below]
        return found

    async def _children(self, namespace: int, parent: UUID) -> list[FoundExecution]:
        wanted, place = ExecutionFilter(parent=parent), END
        found: list[FoundExecution] = []
        while True:
            some, following = await self._store.read(
                lambda: lists.read(child_lists.page(namespace, wanted, place, CHILDREN), namespace)  # noqa: B023
            )
            found += some
            if following is None:
                return found
            place = following
