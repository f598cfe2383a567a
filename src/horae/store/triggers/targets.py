"""Targets: the data of a job that is needed to create its executions without a request of a user.

Scripts that start executions for a due timer, an event, a backfill or an ended upstream read the jobs and create the
executions with this module, in their own transaction. The executions run the version of the job that is current then.
"""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.execution_keys import envelope_keys, is_keyed, with_affinity_key, with_circuit_key
from horae.model.admission.policy import FairPolicy, ShortestPolicy, order_within
from horae.model.admission.rank import RankLeads
from horae.model.admission.share_key import share_or_unnamed
from horae.model.definitions.job import JobState, Spec
from horae.model.definitions.rollout import VersionChoice
from horae.model.executions.deduplication import start_batch
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope, mark_rollout
from horae.model.executions.submission import NewExecution
from horae.store.definitions import rollouts
from horae.store.script import Among, Row, Script, Statement

# A statement that selects COLUMNS from `jobs j` and JOINED returns rows for `read_target`. The name of the namespace is
# a subquery, not a join: PostgreSQL's planner, if it expects few namespaces, would begin with these and scan all jobs.
COLUMNS = (
    "j.id, j.namespace, (SELECT n.name FROM namespaces n WHERE n.id = j.namespace), j.name, j.state, j.version, v.spec,"
    " v.queue, v.lane, j.rollout"
)
COUNT = 10  # the number of these columns
JOINED = "JOIN job_versions v ON v.job = j.id AND v.version = j.version"
OF_JOBS = Statement("targets_of_jobs", f"SELECT {COLUMNS} FROM jobs j {JOINED} WHERE j.id = ANY($1)")

Lead = RankLeads  # (queue, priority, job) -> the lead of a rank: the arrival time less the rank


class Target(Struct, frozen=True, kw_only=True):
    """A job at one version (usually the current one), with its queue and lane."""

    job: UUID
    namespace: int
    key: str  # "namespace/job": its hash decides about jitter and about `H` in cron expressions
    name: str
    state: JobState
    version: int
    spec: Spec
    queue: int
    lane: int
    rolling: int | None = None  # the number of the rollout under way
    choice: "VersionChoice[Target] | None" = None  # the versions from which this rollout chooses; see `with_choices`
    chosen: Instant = 0  # when the rollout began that chose this version; 0 if none did


def read_target(row: Row, at: int = 0) -> Target:
    """Read a target from the COLUMNS that begin at index `at` of a row."""
    job, namespace, namespace_name, name, state, version, spec, queue, lane, rolling = row[at : at + COUNT]
    return Target(
        job=job, namespace=namespace, key=f"{namespace_name}/{name}", name=name, state=state, version=version,
        spec=_read_spec(spec), queue=queue, lane=lane, rolling=rolling,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _read_spec(text: str) -> Spec:
    """Decode a spec; results are cached, because thousands of fires may belong to jobs with a few different specs."""
    return msgspec.json.decode(text, type=Spec)


def targets(jobs: Collection[UUID]) -> Script[dict[UUID, Target]]:
    """Return the targets of jobs, with the choices of rollouts. Deleted jobs are included, with the state "deleted"."""
    rows = yield Among(OF_JOBS, list(jobs))
    return (yield from with_choices({row[0]: read_target(row) for row in rows}))


def with_choices(found: dict[UUID, Target]) -> Script[dict[UUID, Target]]:
    """Return the targets; those with a rollout under way get the versions from which it chooses (`choice`).

    Nothing is read if there is no such target.
    """
    rolling = [target.job for target in found.values() if target.rolling is not None]
    if not rolling:
        return found
    for job, (rollout, arms) in (yield from rollouts.active_rollouts(rolling)).items():
        target = found[job]
        versions = {
            version: structs.replace(
                target, version=version, spec=arm.spec, queue=arm.queue, lane=arm.lane, chosen=rollout.since
            )
            for version, arm in arms.items()
        }
        choice = VersionChoice(rollout=rollout, current=target.version, arms=versions)
        found[job] = structs.replace(target, choice=choice)
    return found


def arm_of(target: Target, item: bytes, tags: Mapping[str, str], new_id: Callable[[], UUID]) -> Target:
    """Return the target at the version that an execution runs: the same one, unless a rollout chooses another.

    `item` has the params of the execution; `new_id` decides if the rollout chooses by chance.
    """
    if target.choice is None:
        return target
    return target.choice.of(target.spec, item, tags, new_id) or target


class ExecutionFactory:
    """Creates executions like `execution_of`, but faster: it copies an execution of a job with an equal definition.

    The copy differs by its job, due time, deadline and params. No copy is made if anything else could differ: if
    the params decide about keys, batches, circuits, affinity or shares, or the queue orders by expected durations.
    """

    def __init__(self, extra: Extra, lead: Lead) -> None:
        self._extra, self._lead = extra, lead
        self._models: dict[tuple[int, ...], tuple[NewExecution, Spec]] = {}

    def of(self, target: Target, due_at: Instant, item: bytes, deadline: Instant | None) -> NewExecution:
        """Return the same execution as `execution_of`."""
        has_deadline = deadline is not None  # decides the rank in a queue that is ordered by deadline
        kind = id(target.spec), target.version, target.namespace, target.queue, target.lane, target.chosen, has_deadline
        known = self._models.get(kind)
        if known is not None:
            model = known[0]
            envelope = structs.replace(model.envelope, job=target.job, due_at=due_at, deadline=deadline)
            return structs.replace(model, envelope=envelope, item=item)
        made = execution_of(target, self._extra, self._lead, due_at=due_at, item=item, deadline=deadline)
        if self._is_model(target):
            self._models[kind] = made, target.spec  # the reference keeps id(target.spec) unique
        return made

    def _is_model(self, target: Target) -> bool:
        spec, policy = target.spec, self._lead.policy(target.queue)
        by_params = is_keyed(spec) or spec.batch or spec.circuit or spec.affinity or isinstance(policy, FairPolicy)
        return not by_params and not isinstance(order_within(policy), ShortestPolicy)


def execution_of(
    target: Target,
    extra: Extra,
    lead: Lead,
    *,
    due_at: Instant = 0,
    item: bytes = b"{}",
    priority: int | None = None,
    deadline: Instant | None = None,
    new_id: Callable[[], UUID] | None = None,
) -> NewExecution:
    """Create an execution of a target.

    `due_at` 0 means at once. `item` has its params, without those that the job's definition sets; the caller has
    checked them against the schema. `extra` has the origin. With `new_id`, a rollout under way chooses the version;
    without it, the execution runs the version of `target`.
    """
    if new_id is not None:
        target = arm_of(target, item, extra.tags, new_id)
    spec = target.spec
    urgency = spec.priority if priority is None else priority
    keys = envelope_keys(spec.keys, target.job, spec, item, extra.tags, lenient=True) if is_keyed(spec) else spec.keys
    envelope = Envelope(
        namespace=target.namespace, job=target.job, version=target.version, queue=target.queue, lane=target.lane,
        priority=urgency, due_at=due_at, deadline=deadline, keys=keys,
        delivery=AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE, bounds=spec.parcel_timeouts,
    )  # fmt: skip
    envelope = with_circuit_key(envelope, spec, item, extra.tags, lenient=True)
    envelope = with_affinity_key(envelope, spec, item, extra.tags, lenient=True)
    if target.chosen:
        envelope = mark_rollout(envelope, target.chosen)
    policy = lead.policy(target.queue)
    share = share_or_unnamed(policy, spec, item, extra.tags) if isinstance(policy, FairPolicy) else ""
    return NewExecution(
        envelope=envelope, rank_lead=lead(target.queue, urgency, target.job, deadline),
        item=item if spec.batch is None else start_batch(item), extra=extra, share=share,
    )  # fmt: skip
