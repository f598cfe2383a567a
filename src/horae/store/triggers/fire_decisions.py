"""Decisions on the fires of due timers. Timers with equal definitions and rules share one computation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput, Costly
from horae.model.executions.execution import Extra
from horae.model.executions.submission import NewExecution, deadline_after
from horae.model.expressions.meter import ITEM_STEPS, Meter, shared_budget
from horae.model.expressions.template import TooCostly
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.resolve import no_such_calendar
from horae.model.triggers.decisions.by_calendar import decide_by_calendar
from horae.model.triggers.decisions.decide import Decision, Fire
from horae.model.triggers.decisions.params import fill_fire_params, fire_scope
from horae.model.triggers.decisions.rules import due_at
from horae.model.triggers.decisions.shared_decisions import SharedDecisions
from horae.store.script import Script
from horae.store.triggers import calendars, turns
from horae.store.triggers.due import DueTimer, Trouble
from horae.store.triggers.targets import ExecutionFactory, Lead, arm_of
from horae.store.triggers.triggers import MAX_REASON, Timer, describe_error
from horae.store.triggers.turns import Turn, turn_key

MAX_FIRES = 100  # fires of one trigger in one transaction

FIRE_EXTRA = Extra(origin="fire")
FREE, BUSY = Turn(), Turn(busy=True)
OpenTimes = Mapping[calendars.CalendarNames, Calendar]


class DecidedTimer(Struct, frozen=True, gc=False):
    """The decision for a due timer and the executions that it starts."""

    due: DueTimer
    decision: Decision
    wanted: list[NewExecution]


def open_times_of(due: Sequence[DueTimer]) -> Script[OpenTimes]:
    """Return the calendars of these timers, with all versions since the earliest of their last decisions."""
    going = [d for d in due if d.timer.rules.calendars]
    if not going:
        return {}
    wanted = {(d.target.namespace, d.timer.rules.calendars) for d in going}
    return (yield from calendars.compiled(sorted(wanted), min(d.timer.decided_through for d in going)))


def decide_all(
    due: Sequence[DueTimer],
    live: Collection[UUID],
    turn_of: Mapping[str, Turn],
    open_times: OpenTimes,
    lead: Lead,
    now: Instant,
    troubles: list[Trouble],
    new_id: Callable[[], UUID],
) -> list[DecidedTimer]:
    """Decide the fires of due timers, all at the instant `now`.

    `live` has the last executions of timers that have not ended, and `turn_of` the states of turns by key. A timer that
    cannot be decided is left out and added to `troubles`.
    """
    alike, terms = SharedDecisions(now, MAX_FIRES), _ExecutionsOfFires(lead, new_id)
    decided: list[DecidedTimer] = []
    # One meter per namespace, so that costly expressions of one namespace do not stop the fires of others.
    meters: dict[int, Meter] = {}
    for d in due:
        t = d.timer
        meter = meters.setdefault(d.target.namespace, Meter())
        meter.grant(ITEM_STEPS)
        meter.over = None
        key = turn_key(d.target.job, t.name) if turn_of else ""
        turn = turn_of.get(key) or (BUSY if live and t.last_execution in live else FREE)  # guard: overlap-sees-last
        try:
            if t.rules.calendars:
                decision = _decide_by(open_times.get((d.target.namespace, t.rules.calendars)), t, turn, now)
            else:
                decision = alike.decide(t.trigger, t.rules, t.decided_through, t.fired, turn.busy, turn.waiting)
            with shared_budget(meter):
                wanted = [terms.of(d, fire) for fire in decision.fires]
            if meter.over is not None:
                raise Costly(meter.over[0], "") if meter.over[1] else BadInput(meter.over[0], "")
            if key in turn_of:
                wanted = turns.mark_turns(wanted, key, turn)
        except TooCostly as error:
            detail = f"The params of the trigger cannot be filled in: {error}."
            troubles.append(Trouble(t.id, d.target.job, detail[:MAX_REASON], error.is_own))
        except Exception as error:
            troubles.append(Trouble(t.id, d.target.job, describe_error(error), isinstance(error, Costly)))
        else:
            decided.append(DecidedTimer(d, decision, wanted))
    return decided


def _decide_by(calendar: Calendar | None, t: Timer, turn: Turn, now: Instant) -> Decision:
    if calendar is None:
        raise no_such_calendar(" and ".join(t.rules.calendars), ())
    return decide_by_calendar(
        t.trigger, t.rules, calendar, t.decided_through, now, MAX_FIRES, fired=t.fired, busy=turn.busy,
        waiting=turn.waiting, moved_to=t.moved_to,
    )  # fmt: skip


class _ExecutionsOfFires:
    """Creates the executions that fires start.

    Fires of one job with the same due time, deadline and params share one `NewExecution`, which saves work.
    """

    def __init__(self, lead: Lead, new_id: Callable[[], UUID]) -> None:
        self._alike, self._new_id = ExecutionFactory(FIRE_EXTRA, lead), new_id
        self._known: dict[tuple[int, Instant, bytes, Instant | None], NewExecution] = {}

    def of(self, due: DueTimer, fire: Fire) -> NewExecution:
        timer, target, at = due.timer, due.target, fire.at
        item = b"{}"
        if timer.params:
            item = fill_fire_params(timer.params, fire_scope(target.spec.params, timer.name, at, fire.since))
        key = f"{target.key}/{timer.name}" if timer.rules.jitter else ""
        due_then = due_at(timer.rules, key, at) + (0 if fire.due is None else fire.due - at)
        if target.choice is not None:
            target = arm_of(target, item, FIRE_EXTRA.tags, self._new_id)
        within = target.spec.within if timer.rules.within is None else timer.rules.within
        deadline = deadline_after(at, within)
        place = id(target), due_then, item, deadline
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = self._alike.of(target, due_then, item, deadline)
        return known
