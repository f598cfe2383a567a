"""Statistics: each server adds up counts in memory, by job and by namespace, and writes them every five seconds.

It writes to rows of its own. Each end of an execution is counted once, in its minute. Hours and days are added up from
minutes and written in the same transaction. So an ended execution is counted either in all of these rows or in none,
and if in none, a recount finds it (recount.py).
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.engine.topics import CancelledCount, FiredParcels, QueueSample, Topics
from horae.env import Env, Instant
from horae.errors import StoreUnavailable
from horae.features.statistics.engine.tallies import MOST_LATE, Tallies
from horae.features.statistics.store import statistics
from horae.model.executions.tally import JOB_SPANS, NAMESPACE_SPANS, JobTally, NamespaceTally, OutcomeCounts
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects
from horae.store.executions.state_changes import FinishedItems
from horae.store.script import Script

FLUSH = 5.0  # seconds between two writes
MINUTE = 60_000_000  # microseconds
WITH_DURATIONS = ("success", "failed")  # only executions with these outcomes have meaningful durations


class Statistics:
    """A service that counts outcomes of executions in memory, and writes them outside the transactions of reports."""

    name = "statistics"

    def __init__(self, env: Env, store: Store, node: UUID, topics: Topics) -> None:
        self._env, self._store, self._node = env, store, node
        self._jobs: dict[tuple[UUID, int], JobTally] = {}  # counts since the last flush, by job and minute
        # counts that were added to hours and days already, but are not written yet, by job and minute
        self._minutes: dict[tuple[UUID, int], OutcomeCounts] = {}
        self._namespaces: dict[tuple[int, int], NamespaceTally] = {}
        self._unowned: list[tuple[UUID, int, JobTally]] = []  # counts of jobs whose namespace is not known yet
        self._job_spans = Tallies(JOB_SPANS, JobTally, statistics.put_jobs, env.new_id)
        self._namespace_spans = Tallies(NAMESPACE_SPANS, NamespaceTally, statistics.put_namespaces, env.new_id)
        self._writing = asyncio.Lock()
        self.alarm = Alarm()
        topics.settled.subscribe(self.name, self.add)
        topics.cancelled.subscribe(self.name, self._cancelled)
        topics.fired.subscribe(self.name, self._fired)
        topics.sampled.subscribe(self.name, self._sampled)

    def add(self, effects: Effects) -> None:
        """Count the effects of a batch of reports."""
        now = self._env.now()
        minute = now // MINUTE
        for ended in effects.ended:
            self._ended(ended, _minute_of(ended, now))
        for again in effects.repeats:
            self._of_job(again.job, again.namespace, minute).add(again.outcome, again.count)
        for waited in effects.waited:
            self._of_namespace(waited.namespace, minute).waits.add(waited.micros, waited.count)
            self._of_job(waited.job, waited.namespace, minute).waits.add(waited.micros, waited.count)

    def _ended(self, ended: FinishedItems, minute: int) -> None:
        count, state = ended.hi - ended.lo, ended.state
        job = self._of_job(ended.job, ended.namespace, minute)
        if state == "success":
            job.success += count
            job.busy += ended.busy
        else:
            job.add(state, count, ended.busy)
        if state == "failed":
            job.steps_failed += count if ended.step else 0
        if ended.spans and state in WITH_DURATIONS:
            job.add_durations(ended.spans, count)
        if ended.waited is not None:
            self._of_namespace(ended.namespace, minute).waits.add(ended.waited, count)
            job.waits.add(ended.waited, count)

    def _cancelled(self, cancelled: CancelledCount) -> None:
        self._of_job(cancelled.job, 0, self._env.now() // MINUTE).add("cancelled", cancelled.executions)

    def _fired(self, fired: FiredParcels) -> None:
        """Count the lag of fires: the time from their nominal instant to their actual start."""
        for parcel in fired.parcels:
            lag = max(0, fired.at - parcel.envelope.due_at)
            self._of_namespace(parcel.envelope.namespace, fired.at // MINUTE).add_lag(lag, len(parcel))

    def _sampled(self, sample: QueueSample) -> None:
        for namespace, count in sample.queued.items():
            tally = self._of_namespace(namespace, sample.at // MINUTE)
            tally.queued = max(count, tally.queued or 0)

    def _of_job(self, job: UUID, namespace: int, minute: int) -> JobTally:
        found = self._jobs.get((job, minute))
        if found is None:
            found = self._jobs[job, minute] = JobTally()
        found.namespace = found.namespace or namespace
        return found

    def _of_namespace(self, namespace: int, minute: int) -> NamespaceTally:
        found = self._namespaces.get((namespace, minute))
        if found is None:
            found = self._namespaces[namespace, minute] = NamespaceTally()
        return found

    async def step(self) -> Wait:
        """Write all counts so far; routes call it before they read."""
        async with self._writing:
            await self._gather()
            await self._write()
            now = self._env.now()
            await self._namespace_spans.flush(self._store, now)
            await self._job_spans.flush(self._store, now)
        return FLUSH

    async def close(self) -> None:
        """Write all remaining counts."""
        await self.step()
        while self._namespace_spans.is_behind or self._job_spans.is_behind:
            await self.step()

    async def _gather(self) -> None:
        """Move the counts since the last flush to the counts to write."""
        counts, self._jobs = self._jobs, {}
        for key, happened in counts.items():
            OutcomeCounts.join(self._minutes.setdefault(key, OutcomeCounts()), happened)
        self._widen(counts)
        await self._add_unowned()
        taken, self._namespaces = self._namespaces, {}
        for (namespace, minute), tally in taken.items():
            self._namespace_spans.add(namespace, minute * MINUTE, tally)

    async def _write(self) -> None:
        """Write the minutes, and a batch of the changed hours, days and other wider spans, in one transaction."""
        minutes, wide, jobs = self._minutes, self._namespace_spans.next_batch(), self._job_spans.next_batch()

        def script() -> Script[None]:
            if minutes:
                yield from statistics.add(self._node, minutes)
            yield from self._namespace_spans.put(wide)
            yield from self._job_spans.put(jobs)

        if not minutes and not wide[1] and not jobs[1]:
            return
        try:
            await self._store.write(script)
        except StoreUnavailable as error:
            # The transaction may have been committed. Writing minutes adds to rows, so it must not be repeated.
            if error.fields.get("unknown"):
                self._minutes = {}
            raise
        self._minutes = {}
        self._namespace_spans.wrote(wide)
        self._job_spans.wrote(jobs)

    def _widen(self, counts: Mapping[tuple[UUID, int], JobTally]) -> None:
        """Add the counts of minutes to the hours and days of their jobs, and to the counts of their namespaces.

        In a namespace, failed steps of workflows are not counted, because the failed workflow is.
        """
        for (job, minute), happened in counts.items():
            self._job_spans.add(job, minute * MINUTE, happened)
            if happened.namespace:
                total = self._of_namespace(happened.namespace, minute)
                OutcomeCounts.join(total, happened)
                total.failed -= happened.steps_failed
            else:
                self._unowned.append((job, minute, happened))

    async def _add_unowned(self) -> None:
        """Read the missing namespaces of jobs, and add the counts of these jobs to the namespaces.

        The namespaces of cancelled executions are missing.
        """
        if not self._unowned:
            return
        jobs = {job for job, _, _ in self._unowned}
        owners = await self._store.read(lambda: statistics.namespaces_of(jobs))
        unowned, self._unowned = self._unowned, []
        for job, minute, happened in unowned:
            if job in owners:
                OutcomeCounts.join(self._of_namespace(owners[job], minute), happened)


def _minute_of(ended: FinishedItems, now: Instant) -> int:
    """Return the minute in which an execution ended, as history has it, but not in the future or more than an hour ago.

    These limits matter if a worker's clock is wrong.
    """
    return max(now - MOST_LATE, min(ended.at or now, now)) // MINUTE
