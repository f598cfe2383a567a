"""What a trigger is: the nominal instants a job fires at, as a pure function of the trigger."""

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.triggers.cron.fire import DstGap, DstOverlap, last_before, next_after
from horae.model.triggers.cron.parse import Dialect, parse_cron
from horae.model.triggers.decisions.external import Event, Watch
from horae.model.triggers.decisions.remembered import Remembered


class Cron(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="cron", cache_hash=True
):
    """Fires when the clock on a zone's wall matches an expression."""

    expression: str
    timezone: str = "UTC"
    dialect: Dialect = "unix"
    dst_gap: DstGap = "shift"
    dst_overlap: DstOverlap = "first"
    key: str = ""  # what H spreads by; empty without H, so that equal expressions are equal triggers


class Interval(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="interval"):
    """Fires at every multiple of a length, counted both ways from the anchor or else from when it was made."""

    every: Micros
    anchor: Instant | None = None
    since: Instant = 0


class Once(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="once"):
    """Fires at one instant."""

    at: Instant


class Derived:
    """Fires that follow from a trigger and something else: they are asked for as a trigger's are."""

    def next(self, after: Instant) -> Instant | None:
        """The first fire strictly after an instant."""
        raise NotImplementedError

    def previous(self, before: Instant) -> Instant | None:
        """The last fire strictly before an instant."""
        raise NotImplementedError

    def boundary(self, at: Instant) -> Instant:
        """The instant from which on fires are due at or after this one."""
        raise NotImplementedError


Trigger = Cron | Interval | Once | Event | Watch


Timed = Cron | Interval | Once  # those that have nominal instants


def next_fire(trigger: Trigger, after: Instant) -> Instant | None:
    """The first nominal fire strictly after an instant, or None for never."""
    if isinstance(trigger, Cron):
        return _coming(trigger, after)
    if isinstance(trigger, Interval):
        phase = _phase(trigger)
        return phase + ((after - phase) // trigger.every + 1) * trigger.every
    if isinstance(trigger, Event | Watch):
        return None
    if isinstance(trigger, Derived):
        return trigger.next(after)
    return trigger.at if trigger.at > after else None


def previous_fire(trigger: Trigger, before: Instant) -> Instant | None:
    """The last nominal fire strictly before an instant, or None when there was none."""
    if isinstance(trigger, Cron):
        return _past(trigger, before)
    if isinstance(trigger, Interval):
        phase = _phase(trigger)
        return phase + (before - 1 - phase) // trigger.every * trigger.every
    if isinstance(trigger, Event | Watch):
        return None
    if isinstance(trigger, Derived):
        return trigger.previous(before)
    return trigger.at if trigger.at < before else None


def due_from(trigger: Trigger, at: Instant) -> Instant:
    """The instant from which on nominal fires are due at or after this one; it differs when fires are moved."""
    return trigger.boundary(at) if isinstance(trigger, Derived) else at


def begin(trigger: Trigger, created_at: Instant) -> Instant:
    """Where a new trigger's decisions start: nothing before its creation, but an instant just past still fires."""
    return min(created_at, trigger.at - 1) if isinstance(trigger, Once) else created_at


def _next_of(cron: Cron, after: Instant) -> Instant | None:
    x = parse_cron(cron.expression, cron.dialect, cron.key)
    return next_after(x, cron.timezone, after, cron.dst_gap, cron.dst_overlap)


def _last_of(cron: Cron, before: Instant) -> Instant | None:
    x = parse_cron(cron.expression, cron.dialect, cron.key)
    return last_before(x, cron.timezone, before, cron.dst_gap, cron.dst_overlap)


_coming, _past = Remembered(_next_of, forward=True), Remembered(_last_of, forward=False)


def _phase(interval: Interval) -> Instant:
    # Whole seconds: triggers made within a second and of one length fire together, as one parcel.
    return interval.since // SECOND * SECOND if interval.anchor is None else interval.anchor
