"""Erasure of personal data: params, results, logs and files of executions, and of the executions that they submitted.

Each request erases one part, beginning with the newest executions, so that no request takes long. The audit log gets a
receipt of each part.
"""

from collections.abc import Sequence
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
        erased, live, undecryptable = set[UUID](), list[UUID](), list[UUID]()
        for one in found:
            is_selected = self._is_selected(one, selection)
            if is_selected is None:
                undecryptable.append(one.execution.id)
            elif is_selected:
                done, left = await self._with_children(namespace, [one])
                erased |= done
                live += left
        archived, files = set[UUID](), set[str]()
        if following is None:
            in_files = partial(self._is_archived, selection, undecryptable)
            archived = await self._archive.erase(namespace, in_files, files)
        below, left = await self._erase_submitted(namespace, erased, archived, files)
        gone = erased | archived | below
        # Executions that moved to the archive meanwhile were not erased in the store, but in the archive.
        live = [one for one in (*live, *left) if one not in gone]
        return ErasureView(
            examined=len(found), erased=len(gone), not_ended=live[:MAX_LISTED],
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

    async def _erase_submitted(
        self, namespace: int, here: set[UUID], archived: set[UUID], files: set[str]
    ) -> tuple[set[UUID], list[UUID]]:
        """Erase the executions that the erased executions submitted, and so on, in the store and in the archive.

        `here` are executions that were erased in the store, `archived` those erased in the archive. Return the ids of
        erased executions, and of those that have not ended. `files` collects the files that cannot be read.
        """
        erased, live = set[UUID](), list[UUID]()
        while here or archived:
            for parent in archived:
                done, left = await self._with_children(namespace, await self._children(namespace, parent))
                here = here | done
                live += left
            # The archive is searched after the store, also for executions that were erased in the store, because these
            # may have moved to the archive meanwhile.
            parents = here | archived
            is_below = lambda one: one.execution_id in parents or one.parent in parents  # noqa: B023, E731
            found = await self._archive.erase(namespace, is_below, files, since=min(map(instant_of, parents)))
            erased |= here | found
            here, archived = set(), found
        return erased, live

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

    async def _with_children(self, namespace: int, found: Sequence[FoundExecution]) -> tuple[set[UUID], list[UUID]]:
        """Erase these executions, those that they submitted, and so on.

        Return the ids of erased executions, and of those that have not ended.
        """
        erased, live, below = set[UUID](), list[UUID](), list(found)
        while below:
            one = below.pop().execution
            below += await self._children(namespace, one.id)
            place = parcel_of(one.id), index_of(one.id)
            if one.state in FINAL and await self._store.write(lambda: erasure.erase(*place)):  # noqa: B023
                erased.add(one.id)
            else:
                live.append(one.id)
        return erased, live

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
