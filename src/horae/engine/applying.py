"""Apply: make calendars, templates and jobs be as documents say, all of them in one transaction or none."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from horae.engine.calendars import Calendars
from horae.engine.job_changes import lock_all
from horae.engine.jobs import Jobs, change_of
from horae.engine.templates import Templates
from horae.env import Env
from horae.errors import BadInput, HoraeError
from horae.model.applied_view import AppliedListView, AppliedView
from horae.model.definition import render_definition
from horae.model.definition.diff import differences
from horae.store.contract import Store
from horae.store.moves.jobs import StoredJob
from horae.store.script import Script
from horae.store.within import together

MOST = 1_000  # documents in one transaction
Later = Callable[[Callable[[], object]], object]  # takes what is to be done once everything is committed


class Documents(Struct, frozen=True, kw_only=True):
    """What is to be applied, in this order; each names itself."""

    calendars: Sequence[dict[str, Any]] = ()
    templates: Sequence[dict[str, Any]] = ()
    jobs: Sequence[dict[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.calendars) + len(self.templates) + len(self.jobs)


class Parts(Struct, frozen=True):
    """Who writes definitions to a store."""

    jobs: Jobs
    templates: Templates
    calendars: Calendars


class _OnlyLooked(Exception):
    """Undoes what a dry run has written."""


class Applying:
    """Applies documents. `parts` makes who writes them to a store, and has what they tell done later."""

    def __init__(
        self, env: Env, store: Store, parts: Callable[[Store, Later], Parts], fire_due: Callable[[], Awaitable[object]]
    ) -> None:
        self._env, self._store, self._parts, self._fire_due = env, store, parts, fire_due
        # Another apply of the namespace would only wait for the first one's locks, with a connection in its hands.
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def apply(self, namespace: int, documents: Documents, *, dry_run: bool = False) -> AppliedListView:
        """Make everything be as the documents say, or raise and change nothing.

        With `dry_run`, only tell what that would change. What is refused is named with its document.
        """
        if not 0 < len(documents) <= MOST:
            remedy = f"Apply 1 to {MOST:,} calendars, templates and jobs at a time, the most basic ones first."
            raise BadInput(f"There are {len(documents):,} documents to apply.", remedy)
        _refuse_twins(documents)
        await self._fire_due()  # what is due is decided before any schedule changes
        later: list[Callable[[], object]] = []
        done: list[AppliedView] = []

        async def all_of_it(store: Store) -> None:
            done.clear()
            later.clear()
            parts = self._parts(store, later.append)
            store.on_started = lambda started: later.append(lambda: self._store.on_started(started))
            await store.write(lambda: _lock(namespace, documents))
            for number, one in enumerate(documents.calendars):
                with _of(one, f"calendars[{number}]", documents):
                    done.append(await _calendar(parts, namespace, one))
            for number, one in enumerate(documents.templates):
                with _of(one, f"templates[{number}]", documents):
                    done.append(await _template(parts, namespace, one))
            for number, one in enumerate(documents.jobs):
                with _of(one, f"jobs[{number}]", documents):
                    done.append(_job(*await parts.jobs.bring(namespace, one)))
            if dry_run:
                raise _OnlyLooked

        try:
            async with self._turns[namespace]:
                await self._store.write_between(together(self._store, self._env, all_of_it))
        except _OnlyLooked:
            return AppliedListView(items=done, dry_run=True)
        for act in later:
            act()
        return AppliedListView(items=done)


def _refuse_twins(documents: Documents) -> None:
    """Refuse two documents of one name: the second would undo the first."""
    for kind in ("calendars", "templates", "jobs"):
        seen: set[str] = set()
        for number, one in enumerate(getattr(documents, kind)):
            name = one.get("name")
            if isinstance(name, str) and name in seen:
                remedy = "Leave one out, or rename it. Nothing was applied."
                raise BadInput(f"{name!r} is defined twice.", remedy, field=f"{kind}[{number}].name")
            seen.add(str(name))


def _lock(namespace: int, documents: Documents) -> Script[None]:
    yield lock_all(namespace, (str(one.get("name")) for one in documents.jobs))


async def _calendar(parts: Parts, namespace: int, document: dict[str, Any]) -> AppliedView:
    view, outcome = await parts.calendars.put(namespace, document.get("name", ""), document)
    return AppliedView(kind="calendar", name=view.name, outcome=outcome, version=view.version)


async def _template(parts: Parts, namespace: int, document: dict[str, Any]) -> AppliedView:
    view, outcome = await parts.templates.put(namespace, document.get("name", ""), document)
    affected = [one.job for one in view.affected]
    return AppliedView(kind="template", name=view.name, outcome=outcome, version=view.version, affected=affected)


def _job(before: StoredJob | None, after: StoredJob) -> AppliedView:
    job = after.job
    changes = [] if before is None else differences(render_definition(before.job.spec), render_definition(job.spec))
    return AppliedView(
        kind="job", name=job.name, outcome=change_of(before, after), version=job.version, job_id=job.id, changes=changes
    )


@contextmanager
def _of(document: dict[str, Any], place: str, documents: Documents) -> Iterator[None]:
    """Say whose mistake it is, and that nothing was changed."""
    try:
        yield
    except HoraeError as error:
        if len(documents) > 1:
            name = document.get("name")
            error.detail = f"{name if isinstance(name, str) else place}: {error.detail}"
            error.remedy = f"{error.remedy} Nothing was applied.".lstrip()
        field = error.fields.get("field")
        error.fields["field"] = f"{place}.{field}" if field else place
        raise
