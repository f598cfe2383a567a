"""A job: a named, versioned definition of what runs, when and how."""

from collections.abc import Iterator
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.admission.circuit import Circuit
from horae.model.admission.keys import encode_keys, keys_of_job
from horae.model.admission.limits import KeyLimit, Limit
from horae.model.admission.placement.placement import Affinity, Cost, Preference, spell
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY
from horae.model.definitions.made import Made
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import Command, Http, Python, Task
from horae.model.definitions.timeouts import Allowance, Patience, Timeouts
from horae.model.definitions.words import words_of
from horae.model.executions.deduplication import Batch, Cache, Debounce, Unique
from horae.model.tenancy.secret_refs import SEALED, TAKES_SECRETS, references_in_all, texts_in
from horae.model.triggers.dependency import Condition, Late
from horae.model.workflows.decisions.values import Workflow

STEADY = "steady:"  # offered by workers that are not labelled spot; no label can be spelled so
PRIORITIES = range(10)  # 0 is the least urgent, 9 the most
DEFAULT_PRIORITY = 4

Delivery = Literal["at-least-once", "at-most-once"]
JobState = Literal["active", "paused", "deleted"]


class Spec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything a user says about a job; each edit makes a new version of it."""

    name: str
    task: Task
    description: str = ""
    schedule: Any = None  # as the user spelled it; `model.triggers.decisions` reads it
    triggers: tuple[dict[str, Any], ...] = ()  # as the user spelled them, each with its name
    params: dict[str, Any] = {}  # defaults, overridden key by key at submission
    schema: dict[str, Any] | None = None  # JSON schema of params, when the signature is known
    retry: RetryPolicy = RetryPolicy()
    timeout: Micros | None = None  # of one try
    timeouts: Timeouts = Timeouts()
    within: Micros | None = None  # of when it is due: its deadline, unless its trigger or submission says another
    grace: Micros = 10 * SECOND  # between SIGTERM and SIGKILL
    priority: int = DEFAULT_PRIORITY
    queue: str = "default"
    needs: tuple[str, ...] = ()  # labels a worker must carry: "gpu" or "gpu=a100", sorted
    interruptible: bool = True  # may run on workers that can be taken away at short notice
    preemptible: bool = False  # gives its place to more urgent work, and goes on later
    preempts: bool = False  # takes the place of less urgent work that is preemptible
    sensitive: bool = False  # its params and results are sealed in the store
    durable: bool = False  # its function may wait without a worker, and goes on past what is remembered
    prefers: tuple[Preference, ...] = ()
    slots: int = 1  # that an execution takes of its worker
    resources: dict[str, int] = {}  # what else it takes, sorted
    affinity: Affinity | None = None
    spread: bool = False
    dependencies: tuple[str, ...] = ()  # ids of other jobs
    conditions: dict[str, Condition] = {}  # of these, unless it is success
    dependency_timeout: Micros = DAY  # how long an execution waits for them
    on_dependency_timeout: Late = "fail"
    tags: dict[str, str] = {}
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()  # references to those that its function asks for
    delivery: Delivery = "at-least-once"
    concurrency: int | None = None  # how many of it run at once
    rate: Rate | None = None  # how often it starts
    limits: tuple[KeyLimit, ...] = ()  # the same for each value of a key
    sequence: str = ""  # a key: its executions run one at a time, in the order of submission
    pause_after: int | None = None  # failed executions in a row after which its triggers pause
    key_for: Micros = DAY  # how long a submission's key stays taken
    unique: Unique | None = None
    debounce: Debounce | None = None
    batch: Batch | None = None
    cache: Cache | None = None
    circuit: Circuit | None = None
    made: Made | None = None  # from a template

    @property
    def keys(self) -> str | None:
        """The keys of an envelope that the job alone decides."""
        return encode_keys(keys_of_job(self.preempts, self.preemptible))

    @property
    def words(self) -> str:
        """What it is looked for by."""
        return words_of(self.name, self.description, self.tags)

    @property
    def needed(self) -> dict[UUID, Condition]:
        """What must become of the jobs it depends on."""
        return {UUID(id): self.conditions.get(id, "success") for id in self.dependencies}

    @property
    def meets(self) -> bool:
        """Whether its submissions share something."""
        return any((self.unique, self.debounce, self.batch, self.cache))

    @property
    def limit(self) -> Limit:
        """What it is limited to as a whole."""
        return Limit(concurrency=self.concurrency, rate=self.rate)

    @property
    def allowance(self) -> Allowance:
        """How long a worker may hold one of its executions."""
        run = None if self.timeout is None else self.timeout + self.grace
        bounds = self.timeouts
        return Allowance(start=bounds.start, run=run, heartbeat=bounds.heartbeat, total=self.retry.within)

    @property
    def bounds(self) -> Patience | None:
        """How long its executions may wait in the queue, and take altogether."""
        queue, total = self.timeouts.queue, self.retry.within
        return None if queue is None and total is None else Patience(queue=queue, total=total)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What a worker must offer to be given this job: labels and, for functions, the function itself."""
        steady = () if self.interruptible else (STEADY,)
        discreet = (*((TAKES_SECRETS,) if self.references else ()), *((SEALED,) if self.sensitive else ()))
        if isinstance(self.task, Python):
            return tuple(sorted({*self.needs, *steady, *discreet, f"function:{self.task.function}"}))
        kinds = ((Command, "command"), (Http, "http"), (Workflow, "workflow"))  # servers themselves offer the last
        kind = next(word for type, word in kinds if isinstance(self.task, type))
        return tuple(sorted({*self.needs, *steady, *discreet, f"kind:{kind}"}))

    @property
    def references(self) -> tuple[str, ...]:
        """The secrets that its executions get, by what follows `secret://`."""
        return references_in_all(self.secrets, self._texts())

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Every text into which secrets are filled, with its field."""
        for name, text in self.env.items():
            yield text, f"env.{name}"
        if isinstance(self.task, Http):
            yield self.task.url, "http.url"
            for name, text in self.task.headers.items():
                yield text, f"http.headers.{name}"
            yield from texts_in(self.task.body, "http.body")

    @property
    def cost(self) -> Cost:
        """What an execution takes of its worker."""
        return Cost(self.slots, tuple(sorted(self.resources.items())))

    @property
    def lane_needs(self) -> tuple[str, ...]:
        """All that tells its lane from others of its queue: capabilities, costs, preferences."""
        asked = spell(self.cost, self.prefers, self.affinity, self.name if self.spread else "")
        return tuple(sorted({*self.capabilities, *asked}))


class Job(Struct, frozen=True, kw_only=True):
    """A job with its current version's spec."""

    id: UUID
    namespace: int
    name: str
    version: int
    state: JobState
    spec: Spec
    created_at: Instant
    updated_at: Instant


class JobVersion(Struct, frozen=True, kw_only=True):
    """One immutable version of a job's definition."""

    job: UUID
    version: int
    spec: Spec
    created_at: Instant
