"""Apply: change calendars, templates and jobs as documents define them, all in one transaction or none."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from horae.engine.definitions.announcer import FireDue, Later
from horae.engine.definitions.job_changes import lock_all
from horae.engine.definitions.job_drafts import Derivation
from horae.engine.definitions.jobs import Jobs, change_of
from horae.engine.triggers.calendars import Calendars
from horae.env import Env
from horae.errors import BadInput, HoraeError
from horae.model.definitions.applied_view import AppliedDocumentsView, AppliedDocumentView
from horae.model.definitions.reading.diff import differences
from horae.model.definitions.reading.order import order_of_calendars, order_of_jobs, order_of_templates
from horae.model.definitions.reading.write import render_definition
from horae.store.contract import Store
from horae.store.nested_transaction import in_one_transaction
from horae.store.script import Script

_NO_TEMPLATES = "The feature templates is switched off on this server."
MOST = 1_000  # documents in one transaction


class Documents(Struct, frozen=True, kw_only=True):
    """The documents to apply: calendars, then templates, then jobs. Within a kind, dependencies are applied first."""

    calendars: Sequence[dict[str, Any]] = ()
    templates: Sequence[dict[str, Any]] = ()
    jobs: Sequence[dict[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.calendars) + len(self.templates) + len(self.jobs)


class TemplateSource(Protocol):
    """Templates as the kernel uses them: jobs are derived from them, and documents change them."""

    async def derive(self, namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
        """Return the whole definition that a body describes by its template. Raises BadInput."""
        ...

    async def apply(self, jobs: Jobs, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
        """Write a template as a document defines it, and update the jobs that were made from it."""
        ...


class NoTemplates:
    """The templates of a server with this feature disabled."""

    async def derive(self, namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
        remedy = 'Write the definition without a template; if the job has one, set {"template": null} first.'
        raise BadInput(_NO_TEMPLATES, remedy, field="template")

    async def apply(self, jobs: Jobs, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
        raise BadInput(_NO_TEMPLATES, "Apply the other documents alone.")


class DefinitionWriters(Struct, frozen=True):
    """The objects that write definitions to a store."""

    jobs: Jobs
    templates: TemplateSource
    calendars: Calendars


class _DryRunEnd(Exception):
    """Rolls back the writes of a dry run."""


class DocumentApplier:
    """Applies documents.

    `parts` makes the writers for a store. Its second argument is the function that receives their announcements.
    """

    def __init__(
        self, env: Env, store: Store, parts: Callable[[Store, Later], DefinitionWriters], fire_due: FireDue
    ) -> None:
        self._env, self._store, self._parts, self._fire_due = env, store, parts, fire_due
        # Without its turn, a second apply in a namespace would hold a connection while it waits for the first's locks.
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def apply(self, namespace: int, documents: Documents, *, dry_run: bool = False) -> AppliedDocumentsView:
        """Apply all documents, or raise and change nothing. An error names its document.

        With `dry_run`, only report what would change.
        """
        if not 0 < len(documents) <= MOST:
            remedy = f"Apply 1 to {MOST:,} calendars, templates and jobs at a time: first those that others need."
            raise BadInput(f"There are {len(documents):,} documents to apply.", remedy)
        steps = list(_in_order(documents))
        later: list[Callable[[], object]] = []
        done: dict[str, AppliedDocumentView] = {}

        async def apply_all(store: Store) -> None:
            done.clear()
            later.clear()
            parts = self._parts(store, later.append)
            store.started.subscribe("apply", lambda started: later.append(lambda: self._store.started(started)))
            await store.write(lambda: _lock(namespace, documents))
            for place, document, apply_document in steps:
                with _of(document, place, documents):
                    done[place] = await apply_document(parts, namespace, document)
            if dry_run:
                raise _DryRunEnd

        try:
            async with self._turns[namespace]:
                await self._fire_due()  # due fires are decided before any schedule changes
                await self._store.write_between(in_one_transaction(self._store, self._env, apply_all))
        except _DryRunEnd:
            return AppliedDocumentsView(items=_as_given(documents, done), dry_run=True)
        for act in later:
            act()
        return AppliedDocumentsView(items=_as_given(documents, done))


Step = tuple[str, dict[str, Any], Callable[[DefinitionWriters, int, dict[str, Any]], Awaitable[AppliedDocumentView]]]


def _in_order(documents: Documents) -> Iterator[Step]:
    """Yield each document with its place and the function that applies it."""
    for number in order_of_calendars(documents.calendars):
        yield f"calendars[{number}]", documents.calendars[number], _calendar
    for number in order_of_templates(documents.templates):
        yield f"templates[{number}]", documents.templates[number], _template
    for number in order_of_jobs(documents.jobs):
        yield f"jobs[{number}]", documents.jobs[number], _job


def _as_given(documents: Documents, done: Mapping[str, AppliedDocumentView]) -> list[AppliedDocumentView]:
    kinds = ("calendars", "templates", "jobs")
    return [done[f"{kind}[{number}]"] for kind in kinds for number in range(len(getattr(documents, kind)))]


def _lock(namespace: int, documents: Documents) -> Script[None]:
    yield from lock_all(namespace, (str(job.get("name")) for job in documents.jobs))


async def _calendar(parts: DefinitionWriters, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
    view, outcome = await parts.calendars.put(namespace, document.get("name", ""), document)
    return AppliedDocumentView(kind="calendar", name=view.name, outcome=outcome, version=view.version)


async def _template(parts: DefinitionWriters, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
    return await parts.templates.apply(parts.jobs, namespace, document)


async def _job(parts: DefinitionWriters, namespace: int, document: dict[str, Any]) -> AppliedDocumentView:
    before, after = await parts.jobs.apply(namespace, document)
    job = after.job
    changes = [] if before is None else differences(render_definition(before.job.spec), render_definition(job.spec))
    return AppliedDocumentView(
        kind="job", name=job.name, outcome=change_of(before, after), version=job.version, job_id=job.id, changes=changes
    )


@contextmanager
def _of(document: dict[str, Any], place: str, documents: Documents) -> Iterator[None]:
    """Name the faulty document in an error, and say that nothing was changed."""
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
