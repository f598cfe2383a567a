"""Quotas: bounds on the queued and running executions of a namespace, its daily usage, and the length of queues.

The bounds of queued executions are never exceeded, because the executions are counted under a lock when a submission is
accepted. Daily usage is read from statistics, which are a few seconds old.
"""

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Any, Literal, get_args

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.errors import OverQuota
from horae.model.admission.limits import Limit
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY
from horae.model.fields.kinds import Choice, Integer, Number
from horae.model.fields.table import Field, Table
from horae.model.fields.values import an_object

Over = Literal["refuse", "wait"]
MOST = 10**15
BOUND = Integer(0, MOST)
PACE = Number(0.01, 1_000_000)
_EXAMPLE = (
    'Send an object such as {"queued": 100000, "executionsPerDay": 1000000}; null or a missing field means no bound.'
)


class Quota(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The bounds of a namespace; None means unbounded."""

    queued: Annotated[int | None, Field(BOUND, "Executions that are queued, or wait without having started.")] = None
    running: Annotated[int | None, Field(Integer(1, MOST), "Executions that run at once.")] = None
    executions_per_day: Annotated[
        int | None, Field(BOUND, "Executions created in a day of UTC, by requests or triggers.")
    ] = None
    worker_seconds_per_day: Annotated[
        int | None, Field(BOUND, "Worker seconds of the executions that end in the day.")
    ] = None
    stored_bytes_per_day: Annotated[int | None, Field(BOUND, "Bytes of params and results added in the day.")] = None
    submissions_per_second: Annotated[
        float | None, Field(PACE, "Executions submitted by requests, evenly spread; a second's worth may come at once.")
    ] = None
    starts_per_second: Annotated[
        float | None,
        Field(PACE, "Attempts that start, evenly spread; a second's worth may start at once."),
    ] = None
    over: Annotated[Over, Field(Choice(get_args(Over)), "Whether executions over the quota are refused or wait.")] = (
        "refuse"
    )

    @property
    def rate(self) -> Rate | None:
        """Return the rate of submissions, with a burst of one second."""
        return _each_second(self.submissions_per_second)

    @property
    def limit(self) -> Limit:
        """Return the limit on running executions and the rate of starts."""
        return Limit(concurrency=self.running, rate=_each_second(self.starts_per_second))


def _each_second(count: float | None) -> Rate | None:
    """Return an even rate of at most `count` a second, with a burst of one second."""
    return None if count is None else Rate(1, ceil(SECOND / count), max(1, int(count)))


class QuotaUsage(Struct):
    """The usage of a namespace in a day."""

    executions: int = 0
    busy: int = 0  # microseconds of worker time
    stored: int = 0  # bytes of params and results
    refused: int = 0  # executions that a quota refused

    def __bool__(self) -> bool:
        return bool(self.executions or self.busy or self.stored or self.refused)

    def join(self, other: "QuotaUsage") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


QUOTA = Table(Quota, "A quota")


def read_quota(body: Any) -> Quota:
    """Read a quota as users write it; null means unbounded. Raises BadInput."""
    given = an_object(body, "body", _EXAMPLE)
    QUOTA.refuse_unknown(given)
    return Quota(**QUOTA.read(given))


def day_of(now: Instant) -> int:
    """Return the UTC day in which usage is counted."""
    return now // DAY


def used_up(quota: Quota, use: QuotaUsage) -> str | None:
    """Return a daily bound that is used up, in words, or None."""
    bounds = (
        (quota.executions_per_day, use.executions, "executionsPerDay", "executions"),
        (quota.worker_seconds_per_day, use.busy // SECOND, "workerSecondsPerDay", "seconds of workers"),
        (quota.stored_bytes_per_day, use.stored, "storedBytesPerDay", "bytes"),
    )
    for bound, used, name, what in bounds:
        if bound is not None and used >= bound:
            return f"{name}: {used:,} of {bound:,} {what} are used up today"
    return None


def refuse_for_today(reason: str, now: Instant) -> OverQuota:
    """Return the refusal of a request when a daily bound is used up."""
    left = (DAY - now % DAY) // SECOND + 1
    return OverQuota(
        f"The namespace is over its quota {reason}.",
        "Usage is counted anew from midnight UTC; an administrator can raise the quota with `horae namespaces quota`.",
        retryAfter=left, quota=reason.partition(":")[0],
    )  # fmt: skip


class QuotaBounds(Struct, frozen=True):
    """This server's knowledge of the bounds of namespaces and queues, and of the daily bounds that are used up."""

    quotas: Mapping[int, Quota] = {}  # namespace -> its quota
    queues: Mapping[int, tuple[str, int]] = {}  # queue -> its name and its maxQueued
    spent: Mapping[int, str] = {}  # namespace -> the daily bound that is used up, in words

    def __bool__(self) -> bool:
        return bool(self.quotas or self.queues)

    def lets_wait(self, namespace: int, refusal: OverQuota) -> bool:
        """Return whether a request waits instead of being refused. A request for a full queue never waits."""
        quota = self.quotas.get(namespace)
        return quota is not None and quota.over == "wait" and refusal.fields.get("quota") != "maxQueued"

    def touch(self, namespace: int, queue: int) -> bool:
        """Return whether the namespace or the queue has a bound."""
        return namespace in self.quotas or queue in self.queues


UNBOUNDED = QuotaBounds()


class QuotaRoom(Struct):
    """The number of executions that a transaction may still accept under each bound."""

    bounds: QuotaBounds
    now: Instant
    queues: dict[int, int] = {}  # queue -> how many executions still fit
    namespaces: dict[int, int] = {}  # namespace -> how many executions still fit
    paces: dict[int, int] = {}  # namespace -> the pace (see `rate.py`) of its rate of submissions
    paced: set[int] = set()  # namespaces whose pace has changed

    def take(self, namespace: int, queue: int, count: int) -> OverQuota | None:
        """Take room for `count` executions, or return the refusal."""
        if namespace in self.bounds.spent:
            return refuse_for_today(self.bounds.spent[namespace], self.now)
        if self.queues.get(queue, count) < count:
            name, most = self.bounds.queues[queue]
            what = f'The queue "{name}" may have {most:,} executions (maxQueued)'
            return _full(what, self.queues[queue], count, most)
        if self.namespaces.get(namespace, count) < count:
            most = self.bounds.quotas[namespace].queued or 0
            what = f"The namespace may have {most:,} queued executions (queued)"
            return _full(what, self.namespaces[namespace], count, most)
        for rooms, key in ((self.queues, queue), (self.namespaces, namespace)):
            if key in rooms:
                rooms[key] -= count
        return None

    def pace(self, namespace: int, count: int) -> OverQuota | None:
        """Charge `count` submissions to the rate of the namespace, or return the refusal with the time to wait."""
        quota = self.bounds.quotas.get(namespace)
        rate = None if quota is None else quota.rate
        if rate is None:
            return None
        pace = self.paces.get(namespace, 0)
        if rate.room(pace, self.now) < min(count, rate.burst):
            wait = max(0, rate.opens_at(pace, min(count, rate.burst)) - self.now)
            allowed = quota.submissions_per_second if quota is not None else 0
            return OverQuota(
                f"The namespace may submit {allowed:g} executions a second (submissionsPerSecond).",
                "Submit more slowly, or many executions in one request.",
                retryAfter=-(-wait // SECOND) or 1, quota="submissionsPerSecond",
            )  # fmt: skip
        self.paces[namespace] = rate.after(pace, count, self.now)
        self.paced.add(namespace)
        return None


def _full(what: str, room: int, count: int, most: int) -> OverQuota:
    left = f"there is room for {max(0, room):,}, but {count:,} were submitted"
    remedy = "Try again when some of them have started." if count <= most else "Submit fewer at a time."
    return OverQuota(f"{what}; {left}.", remedy, retryAfter=1, quota="maxQueued" if "queue " in what else "queued")
