"""The rules every kind of trigger has: from when to when, how often at most, and what becomes of missed fires."""

from typing import Any, Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import MINUTE, format_duration, parse_duration
from horae.model.triggers.cron.fields import spread

GRACE: Micros = MINUTE
MOST_REPEATED = 1_000  # beyond that a backfill is the tool
MOST_QUEUED = 100  # executions of one trigger that wait for each other, unless it says how many

Policy = Literal["skip", "latest", "all", "window"]
Overlap = Literal["allow", "skip", "queueOne", "queueAll", "cancelOther"]
Outside = Literal["skip", "postpone", "advance"]

_ACCEPTED = 'It is "skip", "latest", "all", {"all": 10} for at most ten, or {"window": "1h"}.'


class Misfire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What becomes of fires that were missed: none run, the newest, the newest `most`, or those `within` a time."""

    policy: Policy = "latest"
    most: int = 100
    within: Micros = 0


class Rules(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What holds for a trigger of any kind. Fires lie in [start_at, end_at)."""

    start_at: Instant | None = None
    end_at: Instant | None = None
    max_fires: int | None = None  # counts fires that ran
    jitter: Micros = 0
    spread: Micros = 0  # the window after each nominal instant in which this trigger has its place
    offset: Micros = 0  # that place
    misfire: Misfire = Misfire()
    overlap: Overlap = "skip"
    most_queued: int = MOST_QUEUED  # for `queueAll`
    grace: Micros = GRACE  # a fire decided within it is late, not missed
    calendars: tuple[str, ...] = ()  # all must be open
    outside: Outside = "skip"  # what becomes of a fire while they are not
    within: Micros | None = None  # of the nominal instant: the deadline of its executions, instead of the job's

    @property
    def bounds(self) -> tuple[Instant | None, Instant | None]:
        return self.start_at, self.end_at


def due_at(rules: Rules, key: str, at: Instant) -> Instant:
    """When the execution of a nominal fire is due.

    A spread trigger fires as long after each instant as its offset says; jitter moves each fire by an amount that its
    key and instant decide.
    """
    return at + rules.offset + spread(key, str(at), 0, rules.jitter) if rules.jitter else at + rules.offset


def offset_in(window: Micros, key: str) -> Micros:
    """A trigger's place in a window, always the same: hashed, so that any number of triggers fill it evenly.

    Whole seconds of longer windows: triggers of one job that meet in a second make one parcel.
    """
    step = SECOND if window >= MINUTE else 1_000
    return spread(key, "spread", 0, window // step - 1) * step if window >= step else 0


def parse_misfire(value: str | dict[str, Any]) -> Misfire:
    """Read a `misfire` field or refuse it with what is accepted."""
    if value in ("skip", "latest", "all"):
        return Misfire(policy=value)  # type: ignore[arg-type]
    if isinstance(value, dict) and len(value) == 1:
        (policy, amount), *_ = value.items()
        if policy == "window":
            return Misfire(policy="window", within=parse_duration(amount, field="misfire.window"))
        if policy == "all" and type(amount) is int and 1 <= amount <= MOST_REPEATED:
            return Misfire(policy="all", most=amount)
        if policy == "all":
            raise BadInput(f"misfire.all is a number from 1 to {MOST_REPEATED}.", _ACCEPTED, field="misfire.all")
    raise BadInput(f"{str(value)[:60]!r} is not a misfire policy.", _ACCEPTED, field="misfire")


def render_misfire(misfire: Misfire) -> str | dict[str, Any]:
    """The `misfire` field that reads as this."""
    if misfire.policy == "all":
        return {"all": misfire.most}
    return {"window": format_duration(misfire.within)} if misfire.policy == "window" else misfire.policy
