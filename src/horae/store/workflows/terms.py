"""Terms of a step: the data that its start needs. They are the job that it runs, the policy of the queue, and whether
the lane is open, which means that neither a hold nor a limit keeps executions from starting.

They are read by the same statement as the rows that a workflow's next decision needs, so that the start of the next
step needs no further statement. Terms that are missing are read separately. A lane that was read as open stays open
until the commit, as in a claim, because the statement locks the tables of holds and limits: a transaction that adds a
hold or a limit waits for it.
"""

from collections.abc import Collection
from functools import lru_cache
from uuid import UUID

import msgspec

from horae.env import Instant, Micros
from horae.model.admission.policy import PRIORITY, Policy, ShortestPolicy, decode_policy, order_within
from horae.model.admission.rank import RankLeads
from horae.model.definitions.job import Spec
from horae.model.workflows.decisions.workflow import Pin
from horae.store.admission.coarse import open_condition
from horae.store.base.shelves import Columns
from horae.store.definitions import rollouts
from horae.store.fleet.expected_durations import expected_of
from horae.store.script import ForEach, Row, Script, Statement
from horae.store.triggers.targets import Lead, Target

# Columns of a job `j`, one of its versions `v` and its queue `q`, at the instant `given.at`.
COLUMNS = (
    "j.id, j.namespace, (SELECT n.name FROM namespaces n WHERE n.id = j.namespace), j.name, j.state, v.version, v.spec,"
    f" v.queue, v.lane, j.rollout, q.policy, {open_condition('v.lane', 'given.at', 'false')}"
)
ROLLOUT = 9  # index of the rollout in COLUMNS
PINNED = Statement(
    "targets_of_pins",
    f"SELECT {COLUMNS} FROM given JOIN jobs j ON j.id = given.job"
    " JOIN job_versions v ON v.job = j.id AND v.version = given.version JOIN queues q ON q.id = v.queue",
)
PIN: Columns = (("job", "uuid"), ("version", "int"), ("at", "bigint"))


class StepTerms:
    """The terms of steps that one transaction has read."""

    def __init__(self) -> None:
        self.targets: dict[Pin, Target] = {}
        self.open: set[int] = set()  # lanes that are neither held nor limited
        self._policies: dict[int, Policy] = {}

    def learn(self, row: Row) -> None:
        """Add terms from the columns `COLUMNS` of a row.

        A job with a rollout is left out, because its terms need a further statement; `look_up` reads them.
        """
        if row[0] is not None and row[ROLLOUT] is None:
            self._take(row, {})

    def look_up(self, pins: Collection[Pin], now: Instant) -> Script[None]:
        """Read the terms of these pins that are not known yet."""
        missing = sorted((pin.job, pin.version, now) for pin in pins if pin not in self.targets)
        if not missing:
            return
        rows = yield ForEach(PINNED, PIN, missing)
        rolling = {row[0] for row in rows if row[ROLLOUT] is not None}
        found = (yield from rollouts.active_rollouts(rolling)) if rolling else {}
        since = {(job, version): rollout.since for job, (rollout, arms) in found.items() for version in arms}
        for row in rows:
            self._take(row, since)

    def lead(self, now: Instant) -> Script[Lead]:
        """Return the function that computes rank leads (arrival time less rank) by the policies of the queues."""
        policies, learned = self._policies, dict[UUID, Micros]()
        if any(isinstance(order_within(policy), ShortestPolicy) for policy in policies.values()):
            learned = yield from expected_of({pin.job for pin in self.targets}, now)
        return RankLeads(lambda queue: policies.get(queue, PRIORITY), lambda job: learned.get(job, 0))

    def _take(self, row: Row, since: dict[tuple[UUID, int], Instant]) -> None:
        job, namespace, owner, name, state, version, spec, queue, lane, _, policy, is_open_now = row
        self.targets[Pin(job, version)] = Target(
            job=job, namespace=namespace, key=f"{owner}/{name}", name=name, state=state, version=version,
            spec=_read_spec(spec), queue=queue, lane=lane, chosen=since.get((job, version), 0),
        )  # fmt: skip
        self._policies[queue] = decode_policy(policy)
        if is_open_now:
            self.open.add(lane)


@lru_cache(maxsize=1024)
def _read_spec(text: str) -> Spec:
    """Decode a spec; the results are cached, because thousands of steps run only a few jobs."""
    return msgspec.json.decode(text, type=Spec)
