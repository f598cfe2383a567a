"""Operations on single triggers of jobs: add, change, remove, pause, list and preview.

A change of a trigger changes its job's definition and makes a new version of it. A pause does not.
"""

from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

from msgspec import structs

from horae.engine.base.refs import find_job, in_quotes, nearest
from horae.engine.definitions import job_changes as changes
from horae.engine.definitions.announcer import Announcer, FireDue
from horae.engine.definitions.jobs import TRIES, Jobs
from horae.engine.tenancy.fair_access import Compute
from horae.engine.triggers.trigger_calendars import calendar_of
from horae.engine.triggers.trigger_views import show_trigger, show_triggers, state_of
from horae.env import Env
from horae.errors import BadInput, Busy, Conflict, NotFound, Stale
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import parse_instant
from horae.model.base.view import Page
from horae.model.definitions.reading.preview import show_coming, show_preview
from horae.model.definitions.reading.schedule import name_triggers
from horae.model.fields.values import a_text, an_object
from horae.model.triggers.decisions.future_fires import fires_left
from horae.model.triggers.decisions.named_trigger import SCHEDULE
from horae.model.triggers.decisions.preview import MOST
from horae.model.triggers.decisions.schedule import KINDS
from horae.model.triggers.fire_view import PreviewView, TriggerView
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.definitions.jobs import StoredJob
from horae.store.triggers import calendars, trigger_reads
from horae.store.triggers.trigger_reads import StoredTrigger

MOST_SCANNED = 5_000  # how many triggers are read for one page at most, if few of them match the filter
_BODY = 'Send an object such as {"name": "nightly", "cron": "0 2 * * *"}.'


class Triggers:
    """Operations on triggers. A `ref` is a job's name or id; a trigger is identified by its name in the job."""

    def __init__(
        self,
        env: Env,
        store: Store,
        jobs: Jobs,
        announcer: Announcer,
        fire_due: FireDue,
        compute: Compute,
    ) -> None:
        """Make an object that reads and writes triggers; `compute` runs long computations outside the event loop."""
        self._env, self._store, self._jobs, self._compute = env, store, jobs, compute
        self._announcer, self._fire_due = announcer, fire_due

    async def of_job(self, namespace: int, ref: str) -> list[TriggerView]:
        """Return a job's triggers, sorted by name."""
        job = (await find_job(self._store, namespace, ref)).job
        triggers = await self._store.read(lambda: trigger_reads.of_job(job.id))
        return await show_triggers(self._store, namespace, triggers)

    async def get(self, namespace: int, ref: str, name: str) -> TriggerView:
        """Return one trigger. Raises NotFound with the nearest names."""
        _, shown = await self._find(namespace, ref, name)
        return (await show_triggers(self._store, namespace, [shown]))[0]

    async def list(
        self,
        namespace: int,
        *,
        job: str | None = None,
        state: str | None = None,
        kind: str | None = None,
        search: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TriggerView]:
        """Return triggers across jobs, oldest first; `search` is a part of the trigger's or the job's name.

        A page may be short, even empty, while `nextCursor` says that more follow.
        """
        check_limit(limit)
        a_text(search or "", "search", most=256)
        after = trigger_reads.FIRST if cursor is None else read_cursor(cursor, UUID)
        if job is not None:
            job_id = (await find_job(self._store, namespace, job)).job.id
            triggers = sorted(
                await self._store.read(lambda: trigger_reads.of_job(job_id)), key=lambda shown: shown.timer.id
            )
            found = [shown for shown in triggers if shown.timer.id > after and _fits(shown, state, kind, search)]
            following = found[limit - 1].timer.id if len(found) > limit else None
            return await self._page(namespace, found[:limit], following)
        return await self._scan(namespace, after, limit, lambda shown: _fits(shown, state, kind, search))

    async def _scan(
        self, namespace: int, after: UUID, limit: int, fits: Callable[[StoredTrigger], bool]
    ) -> Page[TriggerView]:
        """Search a page of matching triggers among a limited number of rows."""
        found: list_of[StoredTrigger] = []
        size = limit + 1
        for _ in range(0, max(size, MOST_SCANNED), size):
            rows = await self._store.read(lambda: trigger_reads.page(namespace, after, size))  # noqa: B023
            for shown in rows:
                if len(found) == limit:
                    return await self._page(namespace, found, after)
                after = shown.timer.id
                if fits(shown):
                    found.append(shown)
            if len(rows) < size:
                return await self._page(namespace, found, None)
        return await self._page(namespace, found, after)

    async def _page(self, namespace: int, found: "list_of[StoredTrigger]", after: UUID | None) -> Page[TriggerView]:
        items = await show_triggers(self._store, namespace, found)
        return Page(items=items, next_cursor=None if after is None else make_cursor(after))

    async def add(self, namespace: int, ref: str, body: Any, *, if_match: int | None = None) -> TriggerView:
        """Add a trigger to a job. Raises Conflict when the name is taken."""
        given = {"cron": body} if isinstance(body, str) else an_object(body, "body", _BODY)
        name = ""

        def added(job: StoredJob) -> dict[str, Any]:
            nonlocal name
            present = job.job.spec.triggers
            if any(trigger["name"] == given.get("name") for trigger in present):
                edit = f"`horae triggers edit {job.job.name} {given['name']}`"
                remedy = f"Choose another name, or change the existing trigger: {edit}."
                raise Conflict(f'Job "{job.job.name}" has a trigger named "{given["name"]}".', remedy, field="name")
            named = name_triggers([*present, given])
            name = named[-1]["name"]
            return {"triggers": named}

        await self._change(namespace, ref, added, if_match)
        return await self.get(namespace, ref, name)

    async def edit(
        self, namespace: int, ref: str, name: str, patch: Any, *, if_match: int | None = None
    ) -> TriggerView:
        """Change the fields in the patch.

        Null resets a field to its default. A field that belongs to another kind of trigger, such as `interval` for a
        cron trigger, changes the trigger to that kind, and removes the fields of the old kind.
        """
        given = an_object(patch, "body", 'Send the fields to change, such as {"cron": "0 3 * * *"}.')

        def changed(job: StoredJob) -> dict[str, Any]:
            definition = _definition_of(job, name)
            if name == SCHEDULE:
                return {"schedule": _merged(definition, given)}
            return {
                "triggers": [
                    _merged(trigger, given) if trigger["name"] == name else trigger for trigger in job.job.spec.triggers
                ]
            }

        await self._find(namespace, ref, name)
        await self._change(namespace, ref, changed, if_match)
        return await self.get(namespace, ref, str(given.get("name") or name))

    async def remove(self, namespace: int, ref: str, name: str, *, if_match: int | None = None) -> TriggerView:
        """Remove a trigger. It no longer fires; its ledger stays."""

        def without(job: StoredJob) -> dict[str, Any]:
            _definition_of(job, name)
            if name == SCHEDULE:
                return {"schedule": None}
            return {"triggers": [trigger for trigger in job.job.spec.triggers if trigger["name"] != name]}

        _, shown = await self._find(namespace, ref, name)
        await self._change(namespace, ref, without, if_match)
        return show_trigger(shown, "ended")

    async def pause(self, namespace: int, ref: str, name: str) -> TriggerView:
        """Pause one trigger; the other triggers of the job continue."""
        return await self._switch(namespace, ref, name, "paused")

    async def resume(self, namespace: int, ref: str, name: str) -> TriggerView:
        """Resume a trigger. Fires that it skipped are in the ledger as skipped-paused."""
        return await self._switch(namespace, ref, name, "active")

    async def preview(self, namespace: int, body: Any) -> PreviewView:
        """Return the fires that a trigger would have, or that an existing one will have."""
        given = dict(an_object(body, "body", 'Send {"cron": "0 9 * * *", "timezone": "Europe/Paris", "count": 10}.'))
        start, count = given.pop("from", None), given.pop("count", 10)
        if type(count) is not int or not 1 <= count <= MOST:
            raise BadInput(
                f"count is a number from 1 to {MOST}.", "Without `count`, 10 fires are shown.", field="count"
            )
        after = self._env.now() if start is None else parse_instant(start, field="from")
        ref, name = given.pop("job", None), given.pop("trigger", SCHEDULE)
        if ref is None:
            known = await self._store.read(lambda: calendars.definitions(namespace))
            namespace_name = await self._namespace(namespace)
            return await self._compute(
                lambda: show_preview(given, after, count, namespace_name, by=lambda rules: calendar_of(rules, known))
            )
        if given:
            detail = f"`job` selects an existing trigger, so `{next(iter(given))}` cannot be given as well."
            raise BadInput(detail, "Remove one of these two fields.", field="job")
        _, shown = await self._find(namespace, str(ref), str(name))
        known = await self._store.read(lambda: calendars.definitions(namespace))
        timer = shown.timer
        left = fires_left(timer.trigger, timer.rules, timer.fired, timer.decided_through, after)
        when = structs.replace(timer.when, rules=structs.replace(timer.rules, max_fires=left))
        return await self._compute(lambda: show_coming(when, after, count, by=lambda rules: calendar_of(rules, known)))

    # Helpers

    async def _namespace(self, namespace: int) -> str:
        return await self._store.read(lambda: job_reads.namespace_name(namespace))

    async def _find(self, namespace: int, ref: str, name: str) -> tuple[StoredJob, StoredTrigger]:
        stored = await find_job(self._store, namespace, ref)
        shown = await self._store.read(lambda: trigger_reads.by_name(stored.job.id, name))
        if shown is None:
            raise await self._missing(stored, name)
        return stored, shown

    async def _missing(self, stored: StoredJob, name: str) -> NotFound:
        names = [shown.timer.name for shown in await self._store.read(lambda: trigger_reads.of_job(stored.job.id))]
        near = nearest(name, names)
        remedy = (
            f"Did you mean {in_quotes(near)}?" if near else f"The job's triggers are: {', '.join(names) or 'none'}."
        )
        return NotFound(f'Job "{stored.job.name}" has no trigger named "{name[:60]}".', remedy)

    async def _change(
        self, namespace: int, ref: str, make: Callable[[StoredJob], dict[str, Any]], if_match: int | None
    ) -> StoredJob:
        """Change a job's definition; repeat after a concurrent change, unless the caller gave `if_match`."""
        for _ in range(TRIES):
            before = await find_job(self._store, namespace, ref)
            version = before.job.version if if_match is None else if_match
            try:
                view = await self._jobs.edit(namespace, str(before.job.id), make(before), if_match=version)
            except Stale:
                if if_match is not None:
                    raise
                continue
            return await find_job(self._store, namespace, str(view.job_id))
        raise Busy(f'Job "{ref}" was changed again and again meanwhile.')

    async def _switch(self, namespace: int, ref: str, name: str, state: Literal["active", "paused"]) -> TriggerView:
        for _ in range(TRIES):
            stored, _shown = await self._find(namespace, ref, name)
            if stored.job.state == "deleted":
                raise Conflict(f'Job "{stored.job.name}" is deleted.', "Bring it back first: `horae jobs restore`.")
            await self._fire_due()
            switch = changes.switch(stored, name, state)
            if await self._store.change(switch):
                self._announcer.timers_changed(stored.job.id)
                return await self.get(namespace, str(stored.job.id), name)
        raise Busy(f'Job "{ref}" was changed again and again meanwhile.')


list_of = list  # inside the class, `list` is its method


def _fits(shown: StoredTrigger, state: str | None, kind: str | None, search: str | None) -> bool:
    if state is not None and state_of(shown) != state:
        return False
    if kind is not None and show_trigger(shown).kind != kind:
        return False
    sought = (search or "").lower()
    return sought in shown.timer.name.lower() or sought in shown.job_name.lower()


def _definition_of(stored: StoredJob, name: str) -> dict[str, Any]:
    """Return a trigger as it is written in its job's definition."""
    spec = stored.job.spec
    if name == SCHEDULE and spec.schedule is not None:
        return {"cron": spec.schedule} if isinstance(spec.schedule, str) else spec.schedule
    for trigger in spec.triggers:
        if trigger["name"] == name:
            return trigger
    raise NotFound(f'Job "{stored.job.name}" has no trigger named "{name[:60]}".', "It was removed meanwhile.")


def _merged(definition: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return a trigger after a patch. A field of another kind replaces all fields of the old kind."""
    new = [kind for kind in KINDS if patch.get(kind) is not None]
    present = next((kind for kind in KINDS if kind in definition), None)
    kept = dict(definition)
    if new and present is not None and new[0] != present:
        kept = {field: value for field, value in definition.items() if field not in KINDS[present].table.names}
    merged = kept | patch
    return {field: value for field, value in merged.items() if value is not None}
