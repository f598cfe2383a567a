"""The evaluation of rules: for each kind of rule, a method reads data and returns the findings.

One `Evaluation` is a round over all rules. Data that several rules need is read once in a round.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, assert_never
from uuid import UUID

from horae.env import Env, Instant, Micros
from horae.features.alerts.engine.deadlines import (
    DeadlineCheck,
    NearDeadlines,
    StartEstimates,
    UsualDurations,
    duration_text,
)
from horae.features.alerts.engine.rotation import AlertRotation
from horae.features.alerts.model.findings import JobOutcomes, RuleFinding, is_too_long, low_success, many_retries
from horae.features.alerts.model.rule import (
    CircuitOpen,
    DeadlineRisk,
    FailuresInARow,
    Lag,
    LateWorker,
    MissingSuccess,
    Overlong,
    QueueAge,
    RetryRate,
    SuccessRate,
    WorkerLost,
)
from horae.features.alerts.store import reads
from horae.features.alerts.store.notice_writer import Alert
from horae.features.alerts.store.reads import DueParcel, JobName
from horae.features.alerts.store.rules import StoredRule
from horae.model.base.duration import HOUR, MINUTE, format_duration
from horae.model.base.ids import execution_id, parcel_of
from horae.model.base.instant import format_instant
from horae.model.executions.streak import Streak
from horae.store.admission import circuit_reads
from horae.store.admission.lanes import occupied_lanes
from horae.store.contract import Store
from horae.store.script import ScriptFactory

BACK = 3  # each round searches so many minutes of statistics for failures; statistics are written with less delay
T = TypeVar("T")
Findings = Sequence[RuleFinding]
IsFirst = Callable[[StoredRule], bool]  # whether this is the first evaluation of a rule


class Evaluation:
    """One round, in which each rule is evaluated."""

    def __init__(
        self,
        env: Env,
        store: Store,
        durations: UsualDurations,
        starts: StartEstimates,
        nearing: NearDeadlines,
        rotation: AlertRotation,
        failed_jobs: Mapping[int, Sequence[JobName]],
        is_first: IsFirst,
    ) -> None:
        self._store, self._durations, self._starts, self._now = store, durations, starts, env.now()
        self._nearing, self._rotation, self._failed_jobs, self._is_first = nearing, rotation, failed_jobs, is_first
        self._read: dict[Hashable, Any] = {}

    async def find(self, stored: StoredRule, opened: Sequence[Alert]) -> Findings:
        """Return the findings of a rule. `opened` has its open alerts, whose subjects are always checked again."""
        found = await self._find_by_kind(stored, opened)
        return [*found, *await self._deleted(opened, {one.subject for one in found})]

    def _find_by_kind(  # noqa: C901 - a case for each kind
        self, stored: StoredRule, opened: Sequence[Alert]
    ) -> Awaitable[Findings]:
        match stored.rule:
            case SuccessRate() | RetryRate() as rule:
                return self.rates(stored, rule, opened)
            case FailuresInARow() as rule:
                return self.failures(stored, rule, opened)
            case Overlong() as rule:
                return self.overlong(stored, rule)
            case LateWorker() as rule:
                return self.late_workers(stored, rule, opened)
            case Lag() as rule:
                return self.lag(stored, rule)
            case QueueAge() as rule:
                return self.queue_age(stored, rule)
            case MissingSuccess() as rule:
                return self.missing_success(stored, rule)
            case DeadlineRisk() as rule:
                return self.deadline_risk(stored, rule, opened)
            case WorkerLost() as rule:
                return self.lost_workers(stored, rule, opened)
            case CircuitOpen():
                return self.circuits(stored)
            case _:
                assert_never(stored.rule)

    async def _deleted(self, opened: Sequence[Alert], found: set[str]) -> list[RuleFinding]:
        """Return a `forgotten` finding for each open alert of a deleted job, so that the alert ends.

        Jobs in `found` are left out, because the rule still has a finding for them.
        """
        ending = {alert.subject: alert.job for alert in opened if alert.job is not None and alert.subject not in found}
        if not ending:
            return []
        existing = await self._store.read(lambda: reads.jobs_by_id(ending.values()))
        return [
            RuleFinding(subject=subject, message="the job was deleted", job=job, forgotten=True)
            for subject, job in ending.items()
            if job not in existing
        ]

    async def _once(self, key: Hashable, make: ScriptFactory[T]) -> T:
        """Return the result of a read that several rules may need; it is done once in a round."""
        if key not in self._read:
            self._read[key] = await self._store.read(make)
        found: T = self._read[key]
        return found

    async def _jobs(self, stored: StoredRule, opened: Sequence[Alert], window: Micros = 0) -> list[JobName]:
        """Return the jobs of a rule that had failures or retries lately, and the jobs of its open alerts.

        The first evaluation of a rule searches its whole window for failures, later ones only the last minutes.
        """
        since = self._now // MINUTE - (max(BACK, window // MINUTE) if self._is_first(stored) else BACK)
        ids = await self._once(("troubled", since), lambda: reads.recently_troubled(since))
        troubled = await self._once(("troubled names", since), lambda: reads.jobs_by_id(ids))
        known = {alert.job for alert in opened if alert.job is not None} - troubled.keys()
        others = await self._store.read(lambda: reads.jobs_by_id(known)) if known else {}
        return [job for job in (*troubled.values(), *others.values()) if _covers(stored, job)]

    async def _by_name(self, stored: StoredRule, ids: Sequence[UUID]) -> dict[UUID, JobName]:
        found = await self._store.read(lambda: reads.jobs_by_id(ids)) if ids else {}
        return {job_id: job for job_id, job in found.items() if _covers(stored, job)}

    async def rates(self, stored: StoredRule, rule: SuccessRate | RetryRate, opened: Sequence[Alert]) -> Findings:
        jobs = {job.id: job for job in await self._jobs(stored, opened, rule.window)}
        windows = dict.fromkeys(jobs, rule.window)
        counts = await self._store.read(lambda: reads.outcomes(windows, self._now))
        messages = {job_id: _rate(rule, counts.get(job_id, JobOutcomes())) for job_id in jobs}
        window = format_duration(rule.window)
        return [
            RuleFinding(subject=jobs[job_id].name, job=job_id, message=f"{said} in the last {window}")
            for job_id, said in messages.items()
            if said is not None
        ]

    async def failures(self, stored: StoredRule, rule: FailuresInARow, opened: Sequence[Alert]) -> Findings:
        asked, found = self._rotation.select(stored, opened)
        jobs = {job.id: job for job in await self._jobs(stored, asked)}
        jobs |= {job.id: job for job in self._failed_jobs.get(stored.namespace, ()) if _covers(stored, job)}
        known = {one.job for one in found}
        count, ids = rule.count, sorted(jobs.keys() - known)
        for lo in range(0, len(ids), reads.MOST):
            some = ids[lo : lo + reads.MOST]
            streaks = await self._store.read(lambda some=some: reads.failures_in_a_row(some, count))  # type: ignore[misc]
            found += [_failing(jobs[job_id], streak) for job_id, streak in streaks.items() if streak.failures >= count]
        return found

    async def overlong(self, stored: StoredRule, rule: Overlong) -> Findings:
        running = await self._once(("running", rule.after), lambda: reads.running_since(self._now - rule.after))
        jobs = await self._by_name(stored, [one.job for one in running])
        found: dict[UUID, RuleFinding] = {}
        for one in sorted(running, key=lambda one: one.started_at):
            if one.job not in jobs or one.job in found:
                continue
            usual = await self._durations.get(one.job)
            ran = self._now - one.started_at
            if usual is not None and is_too_long(rule, ran, usual):
                said = f"an execution has run for {duration_text(ran)}; 95% take at most {duration_text(usual)}"
                found[one.job] = RuleFinding(
                    subject=jobs[one.job].name, job=one.job, execution=execution_id(one.parcel, one.lo), message=said
                )
        return list(found.values())

    async def late_workers(self, stored: StoredRule, rule: LateWorker, opened: Sequence[Alert]) -> Findings:
        """Return findings for silent workers, and for workers with an open alert that were lost meanwhile.

        A lost worker is no longer silent, but it did not recover, so its alert must not end as recovered.
        """
        namespace, after = stored.namespace, rule.after
        silent = await self._once(
            ("silent", namespace, after), lambda: reads.silent_workers(namespace, self._now - after)
        )
        late = [
            RuleFinding(subject=worker, message=f"the worker has been silent since {format_instant(seen)}")
            for worker, seen in silent.items()
            if rule.covers(worker)
        ]
        others = {alert.subject for alert in opened} - {one.subject for one in late}
        late += [one for one in await self._lost(stored, HOUR) if one.subject in others]
        return [*late, *await self._unknown_workers(stored, opened, late)]

    async def lost_workers(self, stored: StoredRule, rule: WorkerLost, opened: Sequence[Alert]) -> Findings:
        lost = await self._lost(stored, rule.after)
        return [*lost, *await self._unknown_workers(stored, opened, lost)]

    async def _unknown_workers(
        self, stored: StoredRule, opened: Sequence[Alert], found: Findings
    ) -> list[RuleFinding]:  # fmt: skip
        """Return a `forgotten` finding for each open alert of a worker of which no session is stored any more.

        Such a worker did not recover: it was lost, and its session was deleted, which happens after a day.
        """
        gone, namespace = {alert.subject for alert in opened} - {one.subject for one in found}, stored.namespace
        if not gone:
            return []
        known = await self._once(("known workers", namespace), lambda: reads.workers_not_lost(namespace))
        said = "the worker was lost and did not come back"
        return [RuleFinding(subject=worker, message=said, forgotten=True) for worker in sorted(gone - known)]

    async def _lost(self, stored: StoredRule, within: Micros) -> list[RuleFinding]:
        """Return findings for lost workers; `forgotten` ones for workers that were lost longer ago than `within`."""
        namespace = stored.namespace
        lost = await self._once(("lost", namespace), lambda: reads.lost_workers(namespace))
        found = []
        for worker, at in lost.items():
            if not stored.rule.covers(worker):
                continue
            said = f"the worker was lost at {format_instant(at)} and did not come back"
            forgotten = at <= self._now - within
            said += f" in {format_duration(within)}" if forgotten else ""
            found.append(RuleFinding(subject=worker, message=said, forgotten=forgotten))
        return found

    async def lag(self, stored: StoredRule, rule: Lag) -> Findings:
        """Return findings for jobs with late fires, and for jobs with a trigger whose fires cannot be decided."""
        namespace, before = stored.namespace, self._now - rule.after
        late = await self._once(("late", namespace, before), lambda: reads.late_fires(namespace, before))
        troubled = await self._once(("troubled triggers", namespace), lambda: reads.troubled_triggers(namespace))
        jobs = await self._by_name(stored, [*late, *troubled])
        return [
            RuleFinding(subject=job.name, job=job_id, message=self._lag_message(job_id, late, troubled))
            for job_id, job in jobs.items()
        ]

    def _lag_message(self, job: UUID, late: Mapping[UUID, Instant], troubled: Mapping[UUID, tuple[str, str]]) -> str:
        if job in troubled:
            name, why = troubled[job]
            return f'the trigger "{name}" cannot fire: {why}'.rstrip(".")
        return f"the fire of {format_instant(late[job])} is {duration_text(self._now - late[job])} late"

    async def queue_age(self, stored: StoredRule, rule: QueueAge) -> Findings:
        lanes = await self._once("lanes", occupied_lanes)
        oldest = await self._once("oldest", lambda: reads.oldest_queued(sorted(lanes)))
        return [
            RuleFinding(subject=name, message=f"the next execution has been queued for {duration_text(self._now - at)}")
            for (namespace, name), at in oldest.items()
            if namespace == stored.namespace and rule.covers(name) and self._now - at > rule.after
        ]

    async def missing_success(self, stored: StoredRule, rule: MissingSuccess) -> Findings:
        now = self._now
        jobs = await self._store.read(lambda: reads.jobs_of_rule(stored.namespace, rule))
        old = [(job, made) for job, made in jobs if now - made > rule.after]
        ids = [job.id for job, _ in old]
        succeeded = await self._store.read(lambda: reads.succeeded_within(ids, rule.after, now))
        doubtful = [job_id for job_id in ids if job_id not in succeeded]
        succeeded |= await self._store.read(lambda: reads.recently_succeeded(doubtful, now - rule.after))
        span = format_duration(rule.after)
        return [
            RuleFinding(subject=job.name, job=job.id, message=f"no execution has succeeded in the last {span}")
            for job, _ in old
            if job.id not in succeeded
        ]

    async def deadline_risk(self, stored: StoredRule, rule: DeadlineRisk, opened: Sequence[Alert]) -> Findings:
        known = {parcel_of(alert.execution) for alert in opened if alert.execution is not None}
        nearing = await self._nearing.find()
        going_on = await self._store.read(lambda: reads.still_due(known, self._now)) if known else []
        due: dict[UUID, dict[UUID, DueParcel]] = {}
        for one in (*(one for one in nearing if one.parcel not in known), *going_on):
            due.setdefault(one.job, {})[one.parcel] = one
        jobs = await self._by_name(stored, list(due))
        judge = DeadlineCheck(self._store, self._durations, self._starts, rule, stored.namespace, self._now)
        missed = await judge.missed({job_id: due[job_id] for job_id in jobs}, known)
        return [
            RuleFinding(subject=jobs[job_id].name, job=job_id, execution=execution, message=said)
            for job_id, (execution, said) in missed.items()
        ]

    async def circuits(self, stored: StoredRule) -> Findings:
        shut = await self._once("shut", circuit_reads.shut)
        jobs = await self._by_name(stored, [one.job for one in shut])
        return [
            RuleFinding(
                subject=f"{jobs[one.job].name}:{one.key}" if one.key else jobs[one.job].name, job=one.job,
                message=f"the circuit is {one.state}: {one.cause}".removesuffix("."),
            )
            for one in shut
            if one.job in jobs
        ]  # fmt: skip


def _covers(stored: StoredRule, job: JobName) -> bool:
    return job.namespace == stored.namespace and stored.rule.covers(job.name)


def _rate(rule: SuccessRate | RetryRate, counts: JobOutcomes) -> str | None:
    return low_success(rule, counts) if isinstance(rule, SuccessRate) else many_retries(rule, counts)


def _failing(job: JobName, streak: Streak) -> RuleFinding:
    many = streak.failures > 1
    said = f"{streak.failures} executions in a row failed" if many else "the newest execution failed"
    return RuleFinding(subject=job.name, job=job.id, execution=streak.execution, message=said)
