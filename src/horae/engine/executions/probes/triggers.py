"""Gates of a job's triggers: reasons why no trigger fires."""

from collections.abc import Callable

from horae.engine.executions.probes.case import Case, Sources
from horae.engine.triggers.trigger_calendars import next_runs
from horae.engine.triggers.trigger_views import state_of
from horae.model.base.duration import DAY
from horae.model.base.instant import format_instant
from horae.model.executions.gates import Blocker, closed
from horae.model.triggers.decisions.values import Timed
from horae.store.executions.reads import explain_reads
from horae.store.triggers import calendars, streaks, trigger_reads
from horae.store.triggers.trigger_reads import StoredTrigger

DID_NOT_RUN = "skipped-"
LOOK_BACK = 30 * DAY  # the last fire is searched for in this time


async def deleted(sources: Sources, case: Case) -> list[Blocker]:
    if case.job.state != "deleted":
        return []
    remedy = f"Bring it back with `horae jobs restore {case.job.name}`."
    return [closed("deleted", f'The job "{case.job.name}" is deleted.', remedy)]


async def no_trigger(sources: Sources, case: Case) -> list[Blocker]:
    if await _shown(sources, case) or case.job.spec.dependencies:
        return []
    name = case.job.name
    message = "It has no trigger and depends on no other job, so it runs only on request."
    remedy = f"Run it with `horae jobs trigger {name}`, or add a trigger with `horae triggers add {name}`."
    return [closed("no-trigger", message, remedy)]


async def trigger_paused(sources: Sources, case: Case) -> list[Blocker]:
    pause = (await sources.store.read(lambda: streaks.pauses([case.job.id]))).get(case.job.id)

    def blocker_of(shown: StoredTrigger) -> Blocker | None:
        name = shown.timer.name
        if shown.timer.state != "paused":
            return None
        if pause is not None and name in pause.triggers:
            failed = f"{pause.failures} executions failed in a row, the last {pause.execution}"
            message = f'The trigger "{name}" was paused automatically: {failed}.'
            remedy = f"See what is wrong, then resume it with `horae jobs resume {case.job.name}`."
            return closed("trigger-paused", message, remedy, trigger=name, execution=str(pause.execution))
        remedy = f"Resume it with `horae triggers resume {case.job.name} {name}`."
        return closed("trigger-paused", f'The trigger "{name}" is paused.', remedy, trigger=name)

    return await _each(sources, case, blocker_of)


async def trigger_ended(sources: Sources, case: Case) -> list[Blocker]:
    def blocker_of(shown: StoredTrigger) -> Blocker | None:
        name = shown.timer.name
        if state_of(shown) != "ended":
            return None
        message = f'The trigger "{name}" ({shown.timer.trigger.words}) has ended after {shown.timer.fired} fires.'
        remedy = f"Change it with `horae triggers edit {case.job.name} {name}`."
        return closed("trigger-ended", message, remedy, trigger=name, fired=shown.timer.fired)

    return await _each(sources, case, blocker_of)


async def trigger_failing(sources: Sources, case: Case) -> list[Blocker]:
    def blocker_of(shown: StoredTrigger) -> Blocker | None:
        if shown.trouble is None:
            return None
        name = shown.timer.name
        return closed("trigger-failing", f'The trigger "{name}" cannot be decided: {shown.trouble}', trigger=name)

    return await _each(sources, case, blocker_of)


async def calendar(sources: Sources, case: Case) -> list[Blocker]:
    """Return the closed calendars of triggers. Until a calendar opens, the trigger's fires are skipped or moved."""
    active = [shown for shown in await _shown(sources, case) if shown.timer.rules.calendars and _goes_on(case, shown)]
    wanted = sorted({(case.namespace, shown.timer.rules.calendars) for shown in active})
    known = await sources.store.read(lambda: calendars.compiled(wanted, calendars.FOREVER)) if wanted else {}
    blockers = []
    for shown in active:
        name, names = shown.timer.name, shown.timer.rules.calendars
        found = known.get((case.namespace, names))
        if found is None or found.is_open(case.now):
            continue
        opens = found.next_open(case.now)
        when = "does not open again" if opens is None else f"opens at {format_instant(opens)}"
        outside = {"skip": "are skipped", "postpone": "are postponed", "advance": "were advanced"}
        message = (
            f'The calendar "{found.name}" of the trigger "{name}" is closed and {when};'
            f" fires until then {outside[shown.timer.rules.outside]}."
        )
        blockers.append(closed("calendar", message, until=opens, trigger=name, calendars=list(names)))
    return blockers


async def not_due(sources: Sources, case: Case) -> list[Blocker]:
    """Return the next fire of each time trigger, after its calendars are applied."""
    timed = [
        shown
        for shown in await _shown(sources, case)
        if isinstance(shown.timer.trigger, Timed) and _goes_on(case, shown)
    ]
    runs = await next_runs(sources.store, case.namespace, [shown.timer for shown in timed])
    blockers = []
    for shown in timed:
        name, at = shown.timer.name, runs[shown.timer.id]
        if at is None or at <= case.now:
            continue
        message = f'The trigger "{name}" ({shown.timer.trigger.words}) fires next at {format_instant(at)}.'
        blockers.append(closed("not-due", message, until=at, trigger=name))
    return sorted(blockers, key=lambda blocker: blocker.until or 0)


async def no_event(sources: Sources, case: Case) -> list[Blocker]:
    def blocker_of(shown: StoredTrigger) -> Blocker | None:
        if isinstance(shown.timer.trigger, Timed) or not _goes_on(case, shown):
            return None
        name = shown.timer.name
        return closed("no-event", f'The trigger "{name}" waits: {shown.timer.trigger.words}.', trigger=name)

    return await _each(sources, case, blocker_of)


async def last_decision(sources: Sources, case: Case) -> list[Blocker]:
    """Return the last fire in the ledger, unless it ran."""
    last = await sources.store.read(lambda: explain_reads.last_decision(case.job.id, case.now - LOOK_BACK))
    if last is None or not last.disposition.startswith(DID_NOT_RUN):
        return []
    message = f"Its last fire, at {format_instant(last.at)}, did not run: {last.disposition}, {last.cause}."
    return [
        closed(
            "last-decision",
            message,
            trigger=last.trigger,
            at=format_instant(last.at),
            disposition=last.disposition,
            cause=last.cause,
        )
    ]


def _goes_on(case: Case, shown: StoredTrigger) -> bool:
    return case.job.state == "active" and shown.trouble is None and state_of(shown) == "active"


async def _shown(sources: Sources, case: Case) -> list[StoredTrigger]:
    return await sources.store.read(lambda: trigger_reads.of_job(case.job.id))


async def _each(sources: Sources, case: Case, blocker_of: Callable[[StoredTrigger], Blocker | None]) -> list[Blocker]:
    return [blocker for shown in await _shown(sources, case) if (blocker := blocker_of(shown)) is not None]
