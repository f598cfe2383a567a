"""Checks of new triggers beyond their syntax: they must fire in the future, and their params must fit the job."""

from uuid import UUID

from horae.env import Instant
from horae.errors import BadInput, Costly
from horae.model.admission.execution_keys import envelope_keys, is_keyed
from horae.model.base.duration import DAY
from horae.model.base.instant import format_instant
from horae.model.definitions.job import Spec
from horae.model.documents.schema import check_fits
from horae.model.expressions.template import TemplateError
from horae.model.triggers.decisions.decide import upcoming
from horae.model.triggers.decisions.named_trigger import SCHEDULE, NamedTrigger
from horae.model.triggers.decisions.params import fill_fire_params, fire_scope
from horae.model.triggers.decisions.rules import GRACE
from horae.model.triggers.decisions.values import Once, Timed, begin, next_fire, previous_fire


def refuse_the_past(when: NamedTrigger, now: Instant) -> None:
    """Refuse a new or changed trigger that would never fire. Callers leave out unchanged ones."""
    field = field_of(when)
    if isinstance(when.trigger, Once) and when.trigger.at < now - GRACE:
        remedy = "Give a later instant, or remove the schedule and trigger the job by hand."
        raise BadInput(f"{format_instant(when.trigger.at)} has passed.", remedy, field=f"{field}.at")
    start, end = when.rules.bounds
    if end is not None and end <= now:
        remedy = "Give a later instant, or remove `endAt`."
        raise BadInput(f"endAt has passed: {format_instant(end)}.", remedy, field=f"{field}.endAt")
    if (start, end) == (None, None) or not isinstance(when.trigger, Timed):
        return
    if upcoming(when.trigger, when.rules, begin(when.trigger, now)) is None:
        remedy = "Give other bounds; `horae triggers preview` shows when it fires without them."
        bounds = f"{field}.endAt" if end is not None else f"{field}.startAt"
        raise BadInput("Nothing fires between startAt and endAt.", remedy, field=bounds)


def check_params(when: NamedTrigger, spec: Spec, now: Instant) -> None:
    """Refuse params that do not fit the job's schema. Their templates are filled in as for the next fire."""
    if not isinstance(when.trigger, Timed) or (not when.params and spec.schema is None and not is_keyed(spec)):
        return
    field = f"{field_of(when)}.params"
    at = next_fire(when.trigger, now) or now
    scope = fire_scope(spec.params, when.name, at, previous_fire(when.trigger, at) or at - DAY)
    try:
        item = fill_fire_params(when.params, scope)
    except TemplateError as error:
        remedy = "Templates of a trigger can refer to fire, interval and params."
        raise BadInput(f"{field} cannot be filled: {error}.", remedy, field=field) from None
    check_fits(item, spec, field)
    _refuse_costly_keys(spec, item)


def _refuse_costly_keys(spec: Spec, item: bytes) -> None:
    """Refuse key templates that take too much work with the params of a fire. Raises Costly."""
    if not is_keyed(spec):
        return
    try:
        envelope_keys(None, UUID(int=0), spec, item, {})
    except Costly:
        raise
    except BadInput:
        return  # a key that cannot be filled in is reported at the fire


def field_of(when: NamedTrigger) -> str:
    """Return the field of a job's definition that has this trigger."""
    return SCHEDULE if when.name == SCHEDULE else f"triggers.{when.name}"
