"""Trigger kinds: pure functions that give the nominal instants at which a job fires.

Each kind is a struct: its annotations are the table of its own fields, and its methods compute its fires. To add a
kind, write a struct and list it in `Recurring`, or in `Timed` if it fires once. If a method is missing, or no union
lists the kind, mypy reports the calls.
"""

from typing import Annotated, Any, ClassVar, get_args

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.fields.kinds import Choice, Moment
from horae.model.triggers.cron.count import count_between
from horae.model.triggers.cron.fire import DstGap, DstOverlap, last_before, next_after
from horae.model.triggers.cron.parse import Dialect, needs_key, parse_cron
from horae.model.triggers.cron.wall import CronExpression
from horae.model.triggers.cron.words.calendar import cron_in_words
from horae.model.triggers.cron.zone import ZONE
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger
from horae.model.triggers.decisions.fields import CRON, EVERY, TriggerField
from horae.model.triggers.decisions.fire_cache import FireCache
from horae.model.triggers.decisions.rules import GRACE


class Cron(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="cron", cache_hash=True
):
    """Fires when the local time in a zone matches an expression."""

    expression: Annotated[
        str,
        TriggerField(
            CRON,
            "Fire when the local time matches these five cron fields.",
            name="cron",
            example="0 9 * * MON-FRI",
            metavar="CRON",
            tells="cron",
        ),
    ]
    timezone: Annotated[
        str,
        TriggerField(ZONE, "The time zone of the cron fields.", example="Europe/Paris", flag="tz", metavar="ZONE"),
    ] = "UTC"
    dialect: Annotated[Dialect, TriggerField(Choice(get_args(Dialect)), "The dialect of the cron fields.")] = "unix"
    dst_gap: Annotated[
        DstGap,
        TriggerField(Choice(get_args(DstGap)), "The policy for a time that a clock change skips.", between=True),
    ] = "shift"
    dst_overlap: Annotated[
        DstOverlap, TriggerField(Choice(get_args(DstOverlap)), "The policy for a time that occurs twice.")
    ] = "first"
    key: str = ""  # hashed to find the value of `H`; empty without `H`, so that equal expressions are equal triggers

    @classmethod
    def from_fields(cls, read: dict[str, Any], key: str, created_at: Instant) -> "Timed":
        """Return the trigger with these fields; the values of `H` are computed from a hash of `key`."""
        text = read["expression"]
        cron = cls(**read, key=key if needs_key(text) else "")
        if cron.next(created_at) is None:
            remedy = "Give a later year, or remove the schedule and trigger the job by hand."
            raise BadInput(f'"{text[:60]}" has passed and would never fire.', remedy, field="schedule")
        return cron

    def next(self, after: Instant) -> Instant | None:
        """Return the first nominal fire strictly after an instant, or None if it never fires again."""
        return _coming(self, after)

    def previous(self, before: Instant) -> Instant | None:
        """Return the last nominal fire strictly before an instant, or None without one."""
        return _past(self, before)

    def count(self, after: Instant, before: Instant) -> int:
        """Count the nominal fires strictly between two instants. The cost grows with the number of months."""
        return count_between(self.parsed, self.timezone, after, before, self.dst_gap, self.dst_overlap)

    @property
    def wall(self) -> "Cron | None":
        """The trigger itself, because its fires are wall times; None for kinds that do not depend on a time zone."""
        return self

    @property
    def words(self) -> str:
        """A short description without a full stop; an expression too complex for words is quoted."""
        words = cron_in_words(self.parsed) or f'cron "{self.expression}"'
        return f"{words}, {self.timezone} time"

    @property
    def parsed(self) -> CronExpression:
        return parse_cron(self.expression, self.dialect, self.key)


class Interval(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="interval"):
    """Fires once per interval `every`, counted in both directions from `anchor`, or else from its creation."""

    every: Annotated[
        Micros,
        TriggerField(EVERY, "Fire repeatedly at this interval.", example="5m", metavar="SPAN", tells="interval"),
    ]
    anchor: Annotated[
        Instant | None,
        TriggerField(Moment(), "The instant from which `every` counts; its creation by default.", metavar="TIME"),
    ] = None
    since: Instant = 0  # the creation time of the job

    wall: ClassVar[None] = None

    @classmethod
    def from_fields(cls, read: dict[str, Any], key: str, created_at: Instant) -> "Timed":
        """Return the trigger with these fields; without an anchor it counts from `created_at`."""
        return cls(**read, since=created_at)

    def next(self, after: Instant) -> Instant | None:
        return self._phase + ((after - self._phase) // self.every + 1) * self.every

    def previous(self, before: Instant) -> Instant | None:
        return self._phase + (before - 1 - self._phase) // self.every * self.every

    def count(self, after: Instant, before: Instant) -> int:
        return (before - 1 - self._phase) // self.every - (after - self._phase) // self.every

    @property
    def words(self) -> str:
        return f"every {format_duration(self.every)}"

    @property
    def _phase(self) -> Instant:
        # Whole seconds, so that triggers with equal intervals created in the same second fire together, as one parcel.
        return self.since // SECOND * SECOND if self.anchor is None else self.anchor


class Once(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="once"):
    """Fires at one instant."""

    at: Annotated[
        Instant, TriggerField(Moment(), "Fire once, at this instant.", example="2026-11-15T08:00:00Z", tells="once")
    ]

    wall: ClassVar[None] = None

    @classmethod
    def from_fields(cls, read: dict[str, Any], key: str, created_at: Instant) -> "Timed":
        """Return the trigger with this field; an instant that has just passed still fires."""
        at = read["at"]
        if at < created_at - GRACE:
            remedy = "Give a later instant, or remove the schedule and trigger the job by hand."
            raise BadInput(f"{format_instant(at)} has passed and would never fire.", remedy, field="schedule.at")
        return cls(at=at)

    def next(self, after: Instant) -> Instant | None:
        return self.at if self.at > after else None

    def previous(self, before: Instant) -> Instant | None:
        return self.at if self.at < before else None

    def count(self, after: Instant, before: Instant) -> int:
        return int(after < self.at < before)

    @property
    def words(self) -> str:
        return f"once at {format_instant(self.at)}"


class DerivedFires:
    """Base of classes that compute fires from a trigger and a calendar, and can stand in for the trigger."""

    wall: ClassVar[None] = None

    def next(self, after: Instant) -> Instant | None:
        """Return the first fire strictly after an instant."""
        raise NotImplementedError

    def previous(self, before: Instant) -> Instant | None:
        """Return the last fire strictly before an instant."""
        raise NotImplementedError

    def boundary(self, at: Instant) -> Instant:
        """Return the earliest instant whose nominal fires are due at or after `at`."""
        raise NotImplementedError


Recurring = Cron | Interval  # their fires have data intervals
Timed = Recurring | Once  # kinds with nominal instants
Trigger = Timed | EventTrigger | WatchTrigger

TIMED: tuple[type[Timed], ...] = get_args(Timed)
TRIGGERS: tuple[type[Trigger], ...] = get_args(Trigger)


def next_fire(trigger: Trigger, after: Instant) -> Instant | None:
    """Return the first nominal fire strictly after an instant, or None if it never fires again."""
    return trigger.next(after)


def previous_fire(trigger: Trigger, before: Instant) -> Instant | None:
    """Return the last nominal fire strictly before an instant, or None without one."""
    return trigger.previous(before)


def due_from(trigger: Trigger, at: Instant) -> Instant:
    """Return the earliest instant whose nominal fires are due at or after `at`.

    The result differs from `at` only if a calendar moves fires.
    """
    return trigger.boundary(at) if isinstance(trigger, DerivedFires) else at


def begin(trigger: Trigger, created_at: Instant) -> Instant:
    """Return the first `decided_through` of a trigger: its creation, or earlier if its one instant has just passed."""
    if isinstance(trigger, Recurring | EventTrigger | WatchTrigger):
        return created_at
    return min(created_at, trigger.at - 1)


def _next_of(cron: Cron, after: Instant) -> Instant | None:
    return next_after(cron.parsed, cron.timezone, after, cron.dst_gap, cron.dst_overlap)


def _last_of(cron: Cron, before: Instant) -> Instant | None:
    return last_before(cron.parsed, cron.timezone, before, cron.dst_gap, cron.dst_overlap)


_coming, _past = FireCache(_next_of, forward=True), FireCache(_last_of, forward=False)
