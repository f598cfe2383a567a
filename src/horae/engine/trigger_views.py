"""Triggers as the API shows them."""

from horae.model.definition.schedule import render_when
from horae.model.instant import format_instant
from horae.model.trigger import describe, kind_of
from horae.model.view import TriggerView, shown_time
from horae.store.moves.trigger_reads import Shown


def show_trigger(shown: Shown, state: str | None = None) -> TriggerView:
    """A trigger with how it stands; `state` is told instead of the stored one."""
    timer = shown.timer
    definition = render_when(timer.when)
    return TriggerView(
        job_id=shown.job,
        job=shown.job_name,
        job_state=shown.job_state,
        name=timer.name,
        kind=kind_of(definition).name,
        state=state or timer.state,
        text=describe(timer.trigger),
        definition=definition,
        next_fire_at=shown_time(timer.next_fire_at),
        fired=timer.fired,
        last_execution_id=timer.last_execution,
        trouble=shown.trouble,
        valid_from=format_instant(shown.valid_from),
        version=shown.version,
    )
