"""Deduplication: rules by which submissions of a job share an execution or a result, by key.

A job's rules are `unique` (a repeat gets the first execution), `debounce` (one execution after submissions have stopped
for a while), `batch` (one execution for many submissions) and `cache` (a stored result is the answer). All functions
are pure: the store reads the current holder of a key, and these functions decide about the new submission.
"""

from typing import Annotated, Any, Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.executions.execution import READS_AS_RUNNING, SUCCESS
from horae.model.executions.parcel import MAX_BYTES
from horae.model.fields.kinds import Choice, Custom, Duration, Integer, Key
from horae.model.fields.table import Field, Object
from horae.model.fields.values import a_duration

Keep = Literal["first", "latest"]
KEEPS: tuple[Keep, ...] = ("first", "latest")
MOST_BATCH = 1000
HEAD, TAIL = b'{"items":[', b"]}"  # the first and the last bytes of a batch's params; its items are between them
LIVE = "live"
_LONG = 400 * DAY
_SOON = Duration(SECOND // 1000, DAY)
_KEEP = Choice(KEEPS)
_UNIQUE = (
    'Write {"key": "${params.customer}", "for": "live"}; `for` may also be a span, such as "24h". Or write true: all'
    ' submissions share one key, for "live".'
)
_DEBOUNCE = 'Write {"key": "${params.page}", "wait": "5s", "max": "1m", "keep": "latest"}.'
_BATCH = 'Write {"size": 100, "wait": "1s", "key": "${params.customer}"}.'
_CACHE = (
    'Write {"ttl": "1h", "key": "${params.day}"}. Without `key`, submissions with equal params get the same result.'
)


def _read_span(value: Any, at: str) -> Micros | None:
    return None if value == LIVE else a_duration(value, at, SECOND, _LONG)


class DeduplicationRule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of a job's stored rules: camelCase, durations in microseconds."""

    key: Annotated[
        str,
        Field(
            Key(),
            "A key template. Without it, all submissions of the job share one key; in `cache`, only submissions with"
            " equal params share one.",
        ),
    ] = ""


class Unique(DeduplicationRule, frozen=True, kw_only=True):
    """A key that stands for one execution, for a time or while the execution is live."""

    span: Annotated[
        Micros | None,
        Field(
            Custom(_read_span, str | int | float, "Span", format_duration, str, none=LIVE),
            "How long the key belongs to an execution: a span, or `live`, which means until it ends.",
            name="for",
            metavar="SPAN",
        ),
    ] = None
    keep: Annotated[Keep, Field(_KEEP, "Which of two submissions runs.")] = "first"


class Debounce(DeduplicationRule, frozen=True, kw_only=True):
    """An execution that starts when no submission has arrived for a while, or when the first one is old enough."""

    wait: Annotated[Micros, Field(_SOON, "How long after the last submission it starts.")]
    most: Annotated[
        Micros | None, Field(Duration(0, 30 * DAY), "The longest that the first submission waits.", name="max")
    ] = None
    keep: Annotated[Keep, Field(_KEEP, "The submission from which the params are taken.")] = "latest"

    def starts_at(self, opened_at: Instant, now: Instant) -> Instant:
        """Return when the execution starts if no submission follows this one."""
        return now + self.wait if self.most is None else min(now + self.wait, opened_at + self.most)


class Batch(DeduplicationRule, frozen=True, kw_only=True):
    """An execution that gets several submissions: up to a number, or all within a time after the first."""

    size: Annotated[int, Field(Integer(1, MOST_BATCH), "How many submissions one execution gets at most.")]
    wait: Annotated[Micros, Field(_SOON, "How long it waits for more submissions.", default=SECOND)]


class Cache(DeduplicationRule, frozen=True, kw_only=True):
    """A successful result that answers submissions with the same key, for a time after its execution ended."""

    ttl: Annotated[Micros, Field(Duration(SECOND, _LONG), "How long a result answers submissions with the same key.")]


def _check_debounce(rule: Debounce, at: str) -> None:
    if rule.most is not None and rule.most < rule.wait:
        remedy = f"Use a span from {format_duration(rule.wait)} (the value of `wait`) to 30d."
        raise BadInput(f"{at}.max cannot be {format_duration(rule.most)}.", remedy, field=f"{at}.max")


UNIQUE = Object(Unique, _UNIQUE, short=((bool, ""),), main="key")
DEBOUNCE = Object(Debounce, _DEBOUNCE, main="wait", check=_check_debounce)
BATCH = Object(Batch, _BATCH, main="size")
CACHE = Object(Cache, _CACHE, main="ttl")
AnyDeduplicationRule = Unique | Debounce | Batch | Cache
KINDS: dict[type, str] = {Unique: "unique", Debounce: "debounce", Batch: "batch", Cache: "cache"}


class DeduplicationKey(Struct, frozen=True):
    """A rule of a job, and a submission's key under it."""

    rule: AnyDeduplicationRule
    key: str

    @property
    def kind(self) -> str:
        """Return the name of the rule; for debounce and batch, it is also the reason why their executions wait."""
        return KINDS[type(self.rule)]


class KeyHolder(Struct, frozen=True, kw_only=True):
    """The state of the execution that holds a key."""

    state: str = "expired"
    reason: str = ""  # why it waits
    attempt: int = 0
    until: Instant | None = None  # when the key expires, if it is held for a time
    completed_at: Instant | None = None

    @property
    def is_live(self) -> bool:
        return self.state in ("waiting", "queued", "running")

    @property
    def has_begun(self) -> bool:
        return self.state == "running" or self.attempt > 0 or self.reason in READS_AS_RUNNING


Verdict = Literal["new", "same", "replace"]


def decide_unique(rule: Unique, holder: KeyHolder, now: Instant) -> Verdict:
    """Decide about a submission whose key has a holder: new, the same execution, or a replacement.

    With `keep: latest`, the submission replaces a live holder that has not started.
    """
    holds = holder.is_live if rule.span is None else holder.until is not None and holder.until > now
    if not holds:
        return "new"
    return "replace" if rule.keep == "latest" and holder.is_live and not holder.has_begun else "same"


def has_cached_result(rule: Cache, holder: KeyHolder, now: Instant) -> bool:
    """Return whether the result of an execution answers a submission."""
    return holder.state == SUCCESS and holder.completed_at is not None and holder.completed_at + rule.ttl > now


def fits(rule: Batch, count: int, size: int, item: bytes) -> bool:
    """Return whether a batch of `count` items and `size` bytes has room for one more item."""
    return count < rule.size and size + 1 + len(item) <= MAX_BYTES


def start_batch(item: bytes) -> bytes:
    """Return the params of a batch with one item."""
    return HEAD + item + TAIL


def extend_batch(batch: bytes, items: list[bytes]) -> bytes:
    """Return the params of a batch with more items."""
    return b",".join((batch[: -len(TAIL)], *items)) + TAIL
