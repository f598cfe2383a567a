"""Limits: how many executions run at once, and how often they start; of a job, a queue, a namespace, or a key.

Limits of a job, a queue or a namespace close lanes: a claim looks at them. Limits by key, and sequences, decide when an
item may stand in the queue at all. Nothing is counted aside: use is what lies on the shelves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2s
from typing import Annotated, Any
from uuid import UUID

from msgspec import Struct

from horae.errors import BadInput
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.rate import MOST_STARTS, RATE, RATE_TEXT, Rate
from horae.model.expressions.template import as_text
from horae.model.fields.kinds import Integer, Key, Listed
from horae.model.fields.table import Field, Object, Table

MOST_LIMITS = 8
AT_ONCE = Integer(1, 1_000_000, "It is how many may run at once; pause the job or the queue to run none.")
BURST = Integer(1, MOST_STARTS)
_LIMITS = 'Write [{"key": "${params.customer}", "concurrency": 2, "rate": "10/1m", "burst": 5}].'
_LONG = 128  # characters of a key's value that stand in its name as they are
_PREFIX = "${params."
BY_KEY = "limit:"  # how the names of limits by key begin
_FAN = "fan"  # in the place of a template's digest
UNLIMITED = 1 << 30


class Limit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a job, a queue or a namespace may run at once, and start in a span of time."""

    concurrency: Annotated[int | None, Field(AT_ONCE, "How many run at once.")] = None
    rate: Annotated[
        Rate | None,
        RATE,
        Field(RATE_TEXT, "How often they start.", example="10/1m"),
        Field(BURST, "How many may start at once after a pause.", name="burst"),
    ] = None
    sequence: bool = False  # of a queue: one at a time, in order, also through retries

    @property
    def most(self) -> int:
        """How many may run at once."""
        return 1 if self.sequence else UNLIMITED if self.concurrency is None else self.concurrency


class KeyLimit(Limit, frozen=True, kw_only=True):
    """A limit of a job for each value of a key."""

    key: Annotated[str, Field(Key(), "A template: each value is limited by itself.")]


def _limits_something(limit: KeyLimit, at: str) -> None:
    if limit.concurrency is None and limit.rate is None:
        raise BadInput(f"{at} limits nothing.", "Give it a concurrency, a rate, or both.", field=at)


LIMIT = Table(Limit, "A limit")
LIMITS = Listed(Object(KeyLimit, _LIMITS, what="A limit", check=_limits_something), MOST_LIMITS, _LIMITS, single=dict)
NO_LIMIT = Limit()
OWN = ""  # the key of a job's own limit: all its executions share it


def with_own(limits: tuple[KeyLimit, ...], concurrency: int | None, rate: Rate | None) -> tuple[KeyLimit, ...]:
    """A job's limits by key, and what it is limited to as a whole."""
    if concurrency is None and rate is None:
        return limits
    return (KeyLimit(key=OWN, concurrency=concurrency, rate=rate), *limits)


def queue_limit(queue: int) -> str:
    """The name of a queue's limit."""
    return f"queue:{queue}"


def namespace_limit(namespace: int) -> str:
    return f"namespace:{namespace}"


def key_name(job: UUID, template: str, value: str) -> str:
    """The key of a limit for one value: an edit that keeps the template keeps the key."""
    return f"{BY_KEY}{job}:{_digest(template)}:{_short(value)}"


def sequence_name(job: UUID, value: str) -> str:
    return f"sequence:{job}:{_short(value)}"


def fan_key(parent: UUID, step: str, most: int) -> str:
    """The key that all children of a step share that may not run all at once; no digest is spelled so."""
    return f"{BY_KEY}{parent}:{_FAN}{most}:{_short(step)}"


def is_fan(key: str) -> bool:
    """Whether a key is that of a step of a workflow."""
    return key.startswith(BY_KEY) and key.split(":", 3)[2].startswith(_FAN)


def is_sequence(key: str) -> bool:
    """Whether a key is that of a sequence."""
    return key.startswith("sequence:")


def job_of(key: str) -> UUID:
    """The job whose limit or sequence a key belongs to; of a step's the workflow's execution, which is no job."""
    return UUID(key.split(":", 2)[1])


def limit_of(key: str, limits: Iterable[KeyLimit]) -> Limit:
    """What a job says now of a key; a limit that it no longer has holds nothing back. A step's says it itself."""
    if is_fan(key):
        return Limit(concurrency=int(key.split(":", 3)[2].removeprefix(_FAN)))
    return template_of(key, limits) or NO_LIMIT


def template_of(key: str, limits: Iterable[KeyLimit]) -> KeyLimit | None:
    """Which of a job's limits a key is one value of."""
    digest = key.split(":", 3)[2]
    return next((limit for limit in limits if _digest(limit.key) == digest), None)


def value_in(key: str) -> str:
    """The value that a key stands for, as people are told."""
    return key.split(":", 2)[2] if is_sequence(key) else key.split(":", 3)[3]


@lru_cache(maxsize=1024)
def _digest(template: str) -> str:
    return blake2s(template.encode(), digest_size=4).hexdigest()


def _short(value: str) -> str:
    """A long value by its digest: keys are indexed."""
    return value if len(value) <= _LONG else blake2s(value.encode(), digest_size=16).hexdigest()


Fill = Callable[[str, str], str]  # of a template and the field it stands in


class KeyTemplates(Struct, frozen=True):
    """The templates of a job by which its executions are limited."""

    job: UUID
    limits: tuple[KeyLimit, ...]
    sequence: str

    def __bool__(self) -> bool:
        return bool(self.limits or self.sequence)

    def keys(self, fill: Fill) -> EnvelopeKeys:
        """The keys of one execution."""
        own = any(one.key == OWN for one in self.limits)  # it stands first, and is none that the job lists
        names = {
            key_name(self.job, one.key, fill(one.key, f"limits[{i - own}].key")) for i, one in enumerate(self.limits)
        }
        sequence = sequence_name(self.job, fill(self.sequence, "sequence")) if self.sequence else None
        rated = any(one.rate is not None for one in self.limits)
        return EnvelopeKeys(limits=tuple(sorted(names)), sequence=sequence, rated=rated)


def plain_param(template: str) -> str | None:
    """The param that a template is, and nothing else: such a key needs no expression to be computed."""
    name = template[len(_PREFIX) : -1]
    return name if template.startswith(_PREFIX) and template.endswith("}") and name.isidentifier() else None


def value_of(params: Mapping[str, Any], name: str) -> str | None:
    """A param as the text of a key; None when it is missing."""
    return as_text(params[name]) if name in params else None


def check_limits(limits: Sequence[KeyLimit], sequence: str) -> None:
    """Refuse limits that contradict one another."""
    seen: set[str] = set()
    for i, limit in enumerate(limits):
        if limit.key in seen:
            remedy = "Give one of them, with its concurrency and its rate."
            raise BadInput(f'Two limits have the key "{limit.key}".', remedy, field=f"limits[{i}].key")
        seen.add(limit.key)
        if limit.key == sequence and limit.concurrency is not None and limit.concurrency > 1:
            raise BadInput(
                f'limits[{i}] lets {limit.concurrency} executions of "{sequence}" run at once, the sequence one.',
                "Leave the limit's concurrency out, or the sequence.",
                field=f"limits[{i}].concurrency",
            )
