"""Targets: the data of a job that its executions need when they are not started by a request.

Everything that starts executions by itself (a due timer, an event, a backfill, a finished upstream) reads its jobs and
creates their executions with this module, in its own transaction. The executions run the version that is present at
that moment.
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
from horae.model.admission.share_key import share_or_none
from horae.model.definitions.job import JobState, Spec
from horae.model.definitions.rollout import VersionChoice
from horae.model.executions.deduplication import start_batch
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope, mark_rollout
from horae.model.executions.submission import NewExecution
from horae.store.definitions import rollouts
from horae.store.script import Among, Row, Script, Statement

# A statement that selects COLUMNS from a job `j` with JOINED beside it reads targets with `read_target`.
# The namespace is not joined: a planner that expects few namespaces would start there and scan the jobs for each.
COLUMNS = (
    "j.id, j.namespace, (SELECT n.name FROM namespaces n WHERE n.id = j.namespace), j.name, j.state, j.version, v.spec,"
    " v.queue, v.lane, j.rollout"
)
COUNT = 10  # columns
JOINED = "JOIN job_versions v ON v.job = j.id AND v.version = j.version"
OF_JOBS = Statement("targets_of_jobs", f"SELECT {COLUMNS} FROM jobs j {JOINED} WHERE j.id = ANY($1)")

Lead = RankLeads  # (queue, priority, job) -> distance of the rank before the arrival


class Target(Struct, frozen=True, kw_only=True):
    """A job at its present version, with its queue and lane."""

    job: UUID
    namespace: int
    key: str  # namespace/job, the seed of `H` and jitter
    name: str
    state: JobState
    version: int
    spec: Spec
    queue: int
    lane: int
    rolling: int | None = None  # the number of the rollout under way
    choice: "VersionChoice[Target] | None" = None  # the versions between which a rollout chooses, once they were read
    chosen: Instant = 0  # the start of the rollout that chose this version


def read_target(row: Row, at: int = 0) -> Target:
    """Read a target from the columns that begin at an index of a row."""
    job, namespace, namespace_name, name, state, version, spec, queue, lane, rolling = row[at : at + COUNT]
    return Target(
        job=job, namespace=namespace, key=f"{namespace_name}/{name}", name=name, state=state, version=version,
        spec=_read_spec(spec), queue=queue, lane=lane, rolling=rolling,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _read_spec(text: str) -> Spec:
    """Decode a spec, cached because thousands of fires belong to a few jobs or to jobs with equal specs."""
    return msgspec.json.decode(text, type=Spec)


def targets(jobs: Collection[UUID]) -> Script[dict[UUID, Target]]:
    """Return the targets of these jobs, deleted ones included: their `state` says so."""
    rows = yield Among(OF_JOBS, list(jobs))
    return (yield from with_choices({row[0]: read_target(row) for row in rows}))


def with_choices(found: dict[UUID, Target]) -> Script[dict[UUID, Target]]:
    """Add the versions to choose from to targets with a rollout under way; read nothing if there is none."""
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
    """Return the version of a target that an execution runs: the present one, unless a rollout chooses another."""
    if target.choice is None:
        return target
    return target.choice.of(target.spec, item, tags, new_id) or target


class ExecutionFactory:
    """Creates executions by copying those of jobs with equal definitions: only the job and the due time differ.

    Executions are not copied if their params affect more than their item.
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
    """Create an execution of a target, due at an instant or, with 0, at once; `item` holds its params beyond the job's.

    `extra` names the origin. `item` is not checked here: the caller has checked it against the schema. With `new_id`, a
    rollout under way chooses the version; without it, the execution runs the target's own version.
    """
    if new_id is not None:
        target = arm_of(target, item, extra.tags, new_id)
    spec = target.spec
    item = item if spec.batch is None else start_batch(item)
    urgency = spec.priority if priority is None else priority
    keys = envelope_keys(spec.keys, target.job, spec, item, extra.tags, lenient=True) if is_keyed(spec) else spec.keys
    envelope = Envelope(
        namespace=target.namespace, job=target.job, version=target.version, queue=target.queue, lane=target.lane,
        priority=urgency, due_at=due_at, deadline=deadline, keys=keys,
        delivery=AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE, bounds=spec.parcel_timeouts,
    )  # fmt: skip
    envelope = with_circuit_key(envelope, spec, item, extra.tags)
    envelope = with_affinity_key(envelope, spec, item, extra.tags, lenient=True)
    if target.chosen:
        envelope = mark_rollout(envelope, target.chosen)
    policy = lead.policy(target.queue)
    share = share_or_none(policy, spec, item, extra.tags) if isinstance(policy, FairPolicy) else ""
    return NewExecution(
        envelope=envelope, rank_lead=lead(target.queue, urgency, target.job, deadline), item=item, extra=extra,
        share=share,
    )  # fmt: skip
