"""Rules for triggers of every kind: bounds, maximum fires, and policies for missed and overlapping fires."""

from typing import Annotated, Any, Literal, get_args

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, MINUTE, format_duration, parse_duration
from horae.model.fields.kinds import Choice, Custom, Duration, Integer, ListOf, Moment, Name, as_given
from horae.model.fields.table import Document, Group, Table
from horae.model.fields.values import MOST_WITHIN, NAME, a_list, a_name, an_int, one_of
from horae.model.triggers.cron.fields import spread
from horae.model.triggers.decisions.fields import TriggerField

GRACE: Micros = MINUTE
MOST_REPEATED = 1_000  # the bound of `misfire.all` and `overlap.queueAll`; for more fires, a backfill is the right tool
MOST_QUEUED = 100  # the default bound on waiting executions of a trigger with `queueAll`

Policy = Literal["skip", "latest", "all", "window"]
Overlap = Literal["allow", "skip", "queueOne", "queueAll", "cancelOther"]
Outside = Literal["skip", "postpone", "advance"]

MOST_FIRES = 2**31 - 1
MOST_CALENDARS = 16

_ACCEPTED = 'It is "skip", "latest", "all", {"all": 10} for at most ten, or {"window": "1h"}.'
_OVERLAPS = 'Write "skip", "allow", "queueOne", "queueAll", {"queueAll": 10} or "cancelOther".'
_CALENDARS = 'Write "calendar": "work-days", or "calendars": ["work-days", "office-hours"] that must all be open.'


class Misfire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The policy for missed fires: run none, the newest, the newest `most`, or those of the last `within`."""

    policy: Policy = "latest"
    most: int = 100
    within: Micros = 0


def parse_misfire(value: Any, at: str = "misfire") -> Misfire:
    """Parse a `misfire` field or refuse it with the accepted forms."""
    if value in ("skip", "latest", "all"):
        return Misfire(policy=value)
    if isinstance(value, dict) and len(value) == 1:
        (policy, amount), *_ = value.items()
        if policy == "window":
            return Misfire(policy="window", within=parse_duration(amount, field=f"{at}.window"))
        if policy == "all" and type(amount) is int and 1 <= amount <= MOST_REPEATED:
            return Misfire(policy="all", most=amount)
        if policy == "all":
            raise BadInput(f"{at}.all is a number from 1 to {MOST_REPEATED}.", _ACCEPTED, field=f"{at}.all")
    raise BadInput(f"{str(value)[:60]!r} is not a misfire policy.", _ACCEPTED, field=at)


def render_misfire(misfire: Misfire) -> str | dict[str, Any]:
    """Format a `misfire` field."""
    if misfire.policy == "all":
        return {"all": misfire.most}
    return {"window": format_duration(misfire.within)} if misfire.policy == "window" else misfire.policy


def _read_overlap(given: Document, prefix: str) -> dict[str, Any]:
    """Parse a policy, or {"queueAll": 10} for at most ten waiting executions."""
    value, at = given["overlap"], f"{prefix}overlap"
    if isinstance(value, dict) and set(value) == {"queueAll"}:
        return {"overlap": "queueAll", "most_queued": an_int(value["queueAll"], f"{at}.queueAll", 1, MOST_REPEATED)}
    if isinstance(value, dict):
        raise BadInput(f"{at} is not a valid object.", _OVERLAPS, field=at)
    return {"overlap": one_of(value, at, get_args(Overlap))}


def _write_overlap(rules: "Rules") -> dict[str, Any]:
    return {"overlap": {"queueAll": rules.most_queued} if rules.overlap == "queueAll" else rules.overlap}


def _read_calendars(given: Document, prefix: str) -> dict[str, Any]:
    """Parse the calendars of a trigger and the policy for fires outside their openings."""
    names = _names(given, prefix)
    if not names:
        raise BadInput("outside has no effect without a calendar.", _CALENDARS, field=f"{prefix}outside")
    outside = one_of(given.get("outside", "skip"), f"{prefix}outside", get_args(Outside))
    return {"calendars": names, "outside": outside}


def _names(given: Document, prefix: str) -> tuple[str, ...]:
    if "calendar" in given and "calendars" in given:
        raise BadInput("Both calendar and calendars are given.", _CALENDARS, field=f"{prefix}calendars")
    if "calendar" in given:
        return (_name(given["calendar"], f"{prefix}calendar"),)
    listed = a_list(given.get("calendars", []), f"{prefix}calendars", _CALENDARS, MOST_CALENDARS)
    if "calendars" in given and not listed:
        raise BadInput(f"{prefix}calendars is empty.", _CALENDARS, field=f"{prefix}calendars")
    return tuple(dict.fromkeys(_name(each, f"{prefix}calendars[{i}]") for i, each in enumerate(listed)))


def _name(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{at} is not a calendar's name.", _CALENDARS, field=at)
    try:
        return a_name(value, "calendar", NAME)
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=at) from None


def _write_calendars(rules: "Rules") -> dict[str, Any]:
    names = list(rules.calendars)
    one, several = (names[0], None) if len(names) == 1 else (None, names or None)
    return {"calendar": one, "calendars": several, "outside": rules.outside}


_WORD = str | dict[str, Any]
MISFIRE = Custom(parse_misfire, _WORD, "str | Mapping[str, Any]", writes=render_misfire)
OVERLAPS = Custom(as_given, _WORD, "str | Mapping[str, Any]")
OVERLAP = Group(_read_overlap, _write_overlap)
CALENDARS = Group(_read_calendars, _write_calendars)
_NO_INSTANT = "it fires when it comes, not at an instant from which it could be moved"


class Rules(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Rules for a trigger of any kind. Fires lie in [start_at, end_at)."""

    start_at: Annotated[Instant | None, TriggerField(Moment(), "No fire before this instant.")] = None
    end_at: Annotated[Instant | None, TriggerField(Moment(), "No fire at or after this instant.")] = None
    max_fires: Annotated[
        int | None, TriggerField(Integer(1, MOST_FIRES), "The maximum number of fires; only fires that ran count.")
    ] = None
    jitter: Annotated[
        Micros,
        TriggerField(
            Duration(0, DAY), "Delay each fire by a random amount, up to this.", example="10m", no_event=_NO_INSTANT
        ),
    ] = 0
    # This window begins at each nominal instant; `offset` is the trigger's fixed delay within it.
    spread: Annotated[
        Micros,
        TriggerField(
            Duration(0, DAY),
            "Fire at a fixed place in a window of this length after each instant.",
            example="1h",
            no_event=_NO_INSTANT,
        ),
    ] = 0
    offset: Micros = 0
    misfire: Annotated[
        Misfire,
        TriggerField(
            MISFIRE,
            "The missed fires that run: none, the newest, all, the newest N, or those within a span.",
            example={"all": 10},
            metavar="skip|latest|all[=N]|window=SPAN",
            no_event="it is decided when it comes, so none is missed",
        ),
    ] = Misfire()
    overlap: Annotated[
        Overlap,
        OVERLAP,
        TriggerField(
            OVERLAPS,
            "The policy for a fire while the last execution runs; skip by default, allow for events.",
            example={"queueAll": 10},
            metavar="skip|allow|queueOne|queueAll[=N]|cancelOther",
        ),
    ] = "skip"
    most_queued: int = MOST_QUEUED  # how many executions `queueAll` lets wait
    grace: Annotated[
        Micros,
        TriggerField(
            Duration(0, DAY),
            "A fire that is decided within this time after its instant is late, not missed.",
            no_event="it is decided when it comes, so none is late",
        ),
    ] = GRACE
    within: Annotated[
        Micros | None,
        TriggerField(
            Duration(SECOND, MOST_WITHIN),
            "The deadline of its executions, as a span from the nominal instant; by default, the job's deadline.",
            example="2h",
        ),
    ] = None
    calendars: Annotated[
        tuple[str, ...],
        CALENDARS,
        TriggerField(
            Name(),
            "Only when this calendar is open.",
            name="calendar",
            example="work-days",
            metavar="NAME",
            between=True,
        ),
        TriggerField(
            ListOf(Name(), MOST_CALENDARS, _CALENDARS),
            "Only when all of these calendars are open.",
            name="calendars",
            example=["work-days", "office-hours"],
            flag="",
            between=True,
        ),
    ] = ()
    outside: Annotated[
        Outside,
        CALENDARS,
        TriggerField(Choice(get_args(Outside)), "The policy for a fire while a calendar is closed."),
    ] = "skip"

    @property
    def bounds(self) -> tuple[Instant | None, Instant | None]:
        return self.start_at, self.end_at


def due_at(rules: Rules, key: str, at: Instant) -> Instant:
    """Return when the execution of a nominal fire is due.

    A trigger with `spread` fires at a fixed offset after each instant. `jitter` delays each fire by a pseudo-random
    amount that is derived from `key` and the instant.
    """
    return at + rules.offset + spread(key, str(at), 0, rules.jitter) if rules.jitter else at + rules.offset


def offset_in(window: Micros, key: str) -> Micros:
    """Return a trigger's fixed delay within a window: a hash of `key`, so that many triggers spread evenly over it.

    In windows of a minute or more the delay is in whole seconds, so that fires of one job in the same second can share
    a parcel.
    """
    step = SECOND if window >= MINUTE else 1_000
    return spread(key, "spread", 0, window // step - 1) * step if window >= step else 0


RULES = Table(Rules, "A trigger")


def check_rules(rules: Rules) -> None:
    """Refuse rules that contradict each other."""
    start, end = rules.bounds
    if start is not None and end is not None and end <= start:
        raise BadInput("schedule.endAt is not after startAt.", "Nothing would ever fire.", field="schedule.endAt")
    if rules.spread and rules.jitter:
        remedy = "jitter delays each fire by a random amount, spread delays all fires by a fixed amount: give only one."
        raise BadInput("Both spread and jitter are given.", remedy, field="schedule.spread")


def describe_outside(rules: Rules) -> str:
    """Describe the effect of the calendars, as a suffix of the trigger's description; empty without calendars."""
    if not rules.calendars:
        return ""
    names = " and ".join(f'"{name}"' for name in rules.calendars)
    words = {
        "skip": f", only while {names} is open",
        "postpone": f", or when {names} opens next",
        "advance": f", or when {names} was open last",
    }
    return words[rules.outside]
