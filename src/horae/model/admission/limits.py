"""Limits: how many executions run at once and how often they start, for a job, a queue, a namespace or a key.

A claim checks the limits of queues and namespaces: a limit without room closes its lanes. The limits of a job are
limits by key; they and sequences decide when an item may enter the queue. There are no separate counters: the store
counts usage from the stored slices.
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
from horae.model.fields.kinds import Integer, Key, ListOf
from horae.model.fields.table import Field, Object, Table

MOST_LIMITS = 8
AT_ONCE = Integer(1, 1_000_000, "It limits how many run at once; pause the job or the queue to run none.")
BURST = Integer(1, MOST_STARTS)
_LIMITS = 'Write [{"key": "${params.customer}", "concurrency": 2, "rate": "10/1m", "burst": 5}].'
_LONG = 128  # characters; a longer value is replaced by a digest in the name of its key
_PREFIX = "${params."
BY_KEY = "limit:"  # prefix of the names of limits by key
_FAN = "fan"  # replaces the template's digest in the keys of workflow steps
UNLIMITED = 1 << 30


class Limit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The concurrency and the start rate that a job, a queue or a namespace allows."""

    concurrency: Annotated[int | None, Field(AT_ONCE, "How many run at once.")] = None
    rate: Annotated[
        Rate | None,
        RATE,
        Field(RATE_TEXT, "How often they start.", example="10/1m"),
        Field(BURST, "How many may start at once after a pause.", name="burst"),
    ] = None
    sequence: bool = False  # whether a queue runs executions one at a time, in order; a retry keeps its place

    @property
    def most(self) -> int:
        """Return how many executions may run at once."""
        return 1 if self.sequence else UNLIMITED if self.concurrency is None else self.concurrency


class KeyLimit(Limit, frozen=True, kw_only=True):
    """A limit of a job that applies to each value of a key separately."""

    key: Annotated[str, Field(Key(), "A template; each of its values is limited separately.")]


def _limits_something(limit: KeyLimit, at: str) -> None:
    if limit.concurrency is None and limit.rate is None:
        raise BadInput(f"{at} limits nothing.", "Give it a concurrency, a rate, or both.", field=at)


LIMIT = Table(Limit, "A limit")
LIMITS = ListOf(Object(KeyLimit, _LIMITS, what="A limit", check=_limits_something), MOST_LIMITS, _LIMITS, single=dict)
NO_LIMIT = Limit()
OWN = ""  # the key of a job's own limit, which all its executions share


def with_own(limits: tuple[KeyLimit, ...], concurrency: int | None, rate: Rate | None) -> tuple[KeyLimit, ...]:
    """Return a job's limits by key, preceded by the limit of the job as a whole."""
    if concurrency is None and rate is None:
        return limits
    return (KeyLimit(key=OWN, concurrency=concurrency, rate=rate), *limits)


def queue_limit(queue: int) -> str:
    """Return the name of a queue's limit."""
    return f"queue:{queue}"


def namespace_limit(namespace: int) -> str:
    return f"namespace:{namespace}"


def key_name(job: UUID, template: str, value: str) -> str:
    """Return the key of a job's limit for one value of its template.

    The key contains only the template of the limit, so that other edits of the limit do not change the key.
    """
    return f"{BY_KEY}{job}:{_digest(template)}:{_short(value)}"


def sequence_name(job: UUID, value: str) -> str:
    return f"sequence:{job}:{_short(value)}"


def fan_key(parent: UUID, step: str, most: int) -> str:
    """Return the key that limits how many children of a workflow step run at once.

    Digests of templates are hexadecimal, so none of them starts with `fan`.
    """
    return f"{BY_KEY}{parent}:{_FAN}{most}:{_short(step)}"


def is_fan(key: str) -> bool:
    """Return whether a key belongs to a workflow step."""
    return key.startswith(BY_KEY) and key.split(":", 3)[2].startswith(_FAN)


def is_sequence(key: str) -> bool:
    """Return whether a key belongs to a sequence."""
    return key.startswith("sequence:")


def job_of(key: str) -> UUID:
    """Return the job of a limit's or sequence's key. For a workflow step it is the id of the workflow's execution."""
    return UUID(key.split(":", 2)[1])


def limit_of(key: str, limits: Iterable[KeyLimit]) -> Limit:
    """Return the current limit of a key.

    The key of a workflow step contains its limit. A key whose limit was removed from the job limits nothing.
    """
    if is_fan(key):
        return Limit(concurrency=int(key.split(":", 3)[2].removeprefix(_FAN)))
    return template_of(key, limits) or NO_LIMIT


def template_of(key: str, limits: Iterable[KeyLimit]) -> KeyLimit | None:
    """Return the limit of a job to which a key belongs, if the job still has it."""
    digest = key.split(":", 3)[2]
    return next((limit for limit in limits if _digest(limit.key) == digest), None)


def value_in(key: str) -> str:
    """Return the value in a key, as shown to users."""
    return key.split(":", 2)[2] if is_sequence(key) else key.split(":", 3)[3]


@lru_cache(maxsize=1024)
def _digest(template: str) -> str:
    return blake2s(template.encode(), digest_size=4).hexdigest()


def _short(value: str) -> str:
    """Replace a long value by its digest, because keys are indexed."""
    return value if len(value) <= _LONG else blake2s(value.encode(), digest_size=16).hexdigest()


Fill = Callable[[str, str], str]  # (template, field) -> value


class KeyTemplates(Struct, frozen=True):
    """The templates from which the keys of a job's executions are filled."""

    job: UUID
    limits: tuple[KeyLimit, ...]
    sequence: str

    def __bool__(self) -> bool:
        return bool(self.limits or self.sequence)

    def keys(self, fill: Fill) -> EnvelopeKeys:
        """Return the keys of one execution."""
        own = any(one.key == OWN for one in self.limits)  # it comes first and is not in the job's `limits`
        names = {
            key_name(self.job, one.key, fill(one.key, f"limits[{i - own}].key")) for i, one in enumerate(self.limits)
        }
        sequence = sequence_name(self.job, fill(self.sequence, "sequence")) if self.sequence else None
        rated = any(one.rate is not None for one in self.limits)
        return EnvelopeKeys(limits=tuple(sorted(names)), sequence=sequence, rated=rated)


def plain_param(template: str) -> str | None:
    """Return the param's name if the template is just `${params.NAME}`, so that no expression need be evaluated."""
    name = template[len(_PREFIX) : -1]
    return name if template.startswith(_PREFIX) and template.endswith("}") and name.isidentifier() else None


def value_of(params: Mapping[str, Any], name: str) -> str | None:
    """Return a param as the text of a key; None when it is missing."""
    return as_text(params[name]) if name in params else None


def check_limits(limits: Sequence[KeyLimit], sequence: str) -> None:
    """Refuse limits that contradict each other."""
    seen: set[str] = set()
    for i, limit in enumerate(limits):
        if limit.key in seen:
            remedy = "Give one of them, with its concurrency and its rate."
            raise BadInput(f'Two limits have the key "{limit.key}".', remedy, field=f"limits[{i}].key")
        seen.add(limit.key)
        if limit.key == sequence and limit.concurrency is not None and limit.concurrency > 1:
            raise BadInput(
                f'limits[{i}] lets {limit.concurrency} executions of "{sequence}" run at once, the sequence only 1.',
                "Remove the limit's `concurrency`, or the sequence.",
                field=f"limits[{i}].concurrency",
            )
