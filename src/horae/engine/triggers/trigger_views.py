"""Views of triggers for the API."""

from collections.abc import Sequence

from msgspec import structs

from horae.engine.triggers.trigger_calendars import next_runs
from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.definitions.reading.schedule import render_when
from horae.model.triggers.decisions.rules import describe_outside
from horae.model.triggers.decisions.schedule import kind_of
from horae.model.triggers.decisions.values import Timed
from horae.model.triggers.fire_view import TriggerView
from horae.store.contract import Store
from horae.store.triggers import trigger_reads
from horae.store.triggers.trigger_reads import StoredTrigger


async def show_triggers(store: Store, namespace: int, triggers: Sequence[StoredTrigger]) -> list[TriggerView]:
    """Return triggers with their state and their next run, after calendars are applied."""
    runs = await next_runs(store, namespace, [shown.timer for shown in triggers])
    return [show_trigger(await _counted(store, shown), next_fire_at=runs[shown.timer.id]) for shown in triggers]


async def _counted(store: Store, shown: StoredTrigger) -> StoredTrigger:
    """Return a trigger with its number of fires.

    Fires of events are counted in their own rows, not in the timer's row.
    """
    timer = shown.timer
    if isinstance(timer.trigger, Timed):
        return shown
    fired, last = await store.read(lambda: trigger_reads.fired_by_events(timer.id))
    last = last or timer.last_execution
    return structs.replace(shown, timer=structs.replace(timer, fired=max(fired, timer.fired), last_execution=last))


def state_of(shown: StoredTrigger) -> str:
    """Return the state of a trigger. It has ended when its instants are over or its number of fires is reached."""
    timer = shown.timer
    goes_on = timer.next_fire_at is not None or shown.trouble is not None or not isinstance(timer.trigger, Timed)
    if goes_on or timer.state != "active" or shown.job_state != "active":
        return timer.state
    return "ended"


def show_trigger(shown: StoredTrigger, state: str | None = None, *, next_fire_at: Instant | None = None) -> TriggerView:
    """Return the view of a trigger; `state` replaces the stored one."""
    timer = shown.timer
    definition = render_when(timer.when)
    return TriggerView(
        job_id=shown.job,
        job=shown.job_name,
        job_state=shown.job_state,
        name=timer.name,
        kind=kind_of(definition).name,
        state=state or state_of(shown),
        text=timer.trigger.words + describe_outside(timer.rules),
        definition=definition,
        next_fire_at=shown_time(next_fire_at),
        fired=timer.fired,
        last_execution_id=timer.last_execution,
        problem=shown.trouble,
        valid_from=format_instant(shown.valid_from),
        version=shown.version,
    )
