"""The rules every kind of trigger has: from when to when, how often at most, and what becomes of missed fires."""

from typing import Any, Literal

from msgspec import Struct

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.cron.fields import spread
from horae.model.duration import MINUTE, format_duration, parse_duration

GRACE: Micros = MINUTE
MOST_REPEATED = 1_000  # beyond that a backfill is the tool

Policy = Literal["skip", "latest", "all", "window"]
Overlap = Literal["allow", "skip", "queueOne", "queueAll", "cancelOther"]

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
    misfire: Misfire = Misfire()
    overlap: Overlap = "skip"
    grace: Micros = GRACE  # a fire decided within it is late, not missed


def due_at(rules: Rules, key: str, at: Instant) -> Instant:
    """When the execution of a nominal fire is due: jitter moves it by an amount that its key and instant decide."""
    return at + spread(key, str(at), 0, rules.jitter) if rules.jitter else at


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
