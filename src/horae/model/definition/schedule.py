"""`schedule`: when a job fires and by which rules, in one object or a cron text."""

from typing import Any

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.definition.values import a_duration, one_of, refuse_unknown
from horae.model.duration import DAY
from horae.model.instant import parse_instant
from horae.model.trigger import GRACE, Misfire, Rules, Trigger, parse_misfire, parse_schedule

RULES = ("misfire", "overlap", "startAt", "endAt", "jitter", "grace")
KINDS = {
    "cron": ("cron", "timezone", "dialect", "dstGap", "dstOverlap"),
    "every": ("every", "anchor"),
    "at": ("at",),
}
OVERLAPS = ("skip", "allow")  # those that act in this release


class When(Struct, frozen=True):
    """A trigger with its rules."""

    trigger: Trigger
    rules: Rules


def parse_when(value: Any, *, key: str, created_at: Instant) -> When:
    """Read a `schedule`: rules stand beside cron, every or at in its object."""
    if not isinstance(value, dict):
        return When(parse_schedule(value, key=key, created_at=created_at), Rules())
    kind = next((name for name in KINDS if name in value), None)
    if kind is not None and not any(name in value for name in KINDS if name != kind):
        refuse_unknown(value, (*KINDS[kind], *RULES), "This schedule", "schedule.")
    bare = {name: part for name, part in value.items() if name not in RULES}
    trigger = parse_schedule(bare, key=key, created_at=created_at)
    return When(trigger, _rules({name: value[name] for name in RULES if value.get(name) is not None}))


def _rules(given: dict[str, Any]) -> Rules:
    start, end = (_instant(given, name) for name in ("startAt", "endAt"))
    if start is not None and end is not None and end <= start:
        raise BadInput("schedule.endAt is not after startAt.", "Nothing would ever fire.", field="schedule.endAt")
    overlap: Any = one_of(given.get("overlap", "skip"), "schedule.overlap", OVERLAPS)
    return Rules(
        start_at=start,
        end_at=end,
        jitter=a_duration(given.get("jitter", 0), "schedule.jitter", 0, DAY),
        misfire=_misfire(given["misfire"]) if "misfire" in given else Misfire(),
        overlap=overlap,
        grace=a_duration(given["grace"], "schedule.grace", 0, DAY) if "grace" in given else GRACE,
    )


def _instant(given: dict[str, Any], name: str) -> Instant | None:
    return parse_instant(given[name], field=f"schedule.{name}") if name in given else None


def _misfire(value: Any) -> Misfire:
    try:
        return parse_misfire(value)
    except BadInput as error:
        error.fields["field"] = f"schedule.{error.fields['field']}"
        raise
