"""Autoscaling: the signals of a queue, and the number of workers that it needs for a target wait."""

from msgspec import Struct

from horae.engine.definitions.directory import LocalDirectory
from horae.env import SECOND, Env, Micros
from horae.errors import NotFound
from horae.model.fleet.autoscale import ArrivalMeter, BacklogSample, ScalingSignals, desired_workers
from horae.model.fleet.session import Session
from horae.store.contract import Store
from horae.store.fleet import autoscale

MOST_WORKERS = 100_000
MOST_METERS = 1000  # queues with a meter of arrivals
MINUTE = 60.0  # seconds


class ScalingAdvice(Struct, frozen=True, kw_only=True):
    """A queue's signals, and the number of workers that follows from them."""

    queue: str
    signals: ScalingSignals
    target_wait: Micros
    desired: int


class Autoscale:
    """Computes the number of workers that a queue needs. Arrivals are measured from one call to the next."""

    def __init__(self, env: Env, store: Store, directory: LocalDirectory) -> None:
        self._env, self._store, self._directory = env, store, directory
        self._meters: dict[int, ArrivalMeter] = {}

    async def advise(
        self, namespace: int, name: str, target_wait: Micros, slots_per_worker: int | None = None
    ) -> ScalingAdvice:
        """Return the signals of a queue, and the number of workers that keeps waits within the target."""
        queue = await self._queue(namespace, name)
        now = self._env.now()
        lanes = [lane.id for lane in self._directory.lanes.values() if lane.queue == queue]
        activity = await self._store.read(lambda: autoscale.queue_activity(queue, lanes, now))
        sessions = [
            session for session in await self._store.sessions(namespace, now, MOST_WORKERS) if _serves(session, name)
        ]
        signals = self._signals(queue, activity, sessions)
        desired = desired_workers(signals, target_wait / SECOND, slots_per_worker)
        return ScalingAdvice(queue=name, signals=signals, target_wait=target_wait, desired=desired)

    async def _queue(self, namespace: int, name: str) -> int:
        for again in (False, True):
            if again:
                await self._directory.load()
            for queue in self._directory.queues.values():
                if queue.namespace == namespace and queue.name == name:
                    return queue.id
        raise NotFound(f'No queue "{name}".', "List queues with `horae queues list` or GET /api/v1/queues.")

    def _signals(self, queue: int, activity: autoscale.QueueActivity, sessions: list[Session]) -> ScalingSignals:
        now = self._env.now()
        ended = sum(count for count, _ in activity.ended.values())
        busy = sum(micros for _, micros in activity.ended.values())
        served = _service_rate(activity, now / SECOND)
        if len(self._meters) > MOST_METERS:
            self._meters.clear()
        counts = {minute: count for minute, (count, _) in activity.ended.items()}
        sample = BacklogSample(now / SECOND, activity.backlog + activity.running, counts)
        arriving = self._meters.setdefault(queue, ArrivalMeter()).rate(sample)
        return ScalingSignals(
            backlog=activity.backlog,
            running=activity.running,
            oldest_age=0.0 if activity.oldest is None else max(0, now - activity.oldest) / SECOND,
            arrival_rate=served if arriving is None else arriving,
            service_rate=served,
            duration=_duration(ended, busy, activity),
            workers=len(sessions),
            slots=sum(session.concurrency for session in sessions),
            busy=sum(min(session.running, session.concurrency) for session in sessions),
        )


def _serves(session: Session, queue: str) -> bool:
    return session.state == "live" and queue in session.queues


def _service_rate(activity: autoscale.QueueActivity, now: float) -> float:
    """Return how many executions ended per second in this minute and the one before."""
    minute = int(now // MINUTE)
    ended = sum(count for at, (count, _) in activity.ended.items() if at >= minute - 1)
    return ended / (MINUTE + now % MINUTE)


def _duration(ended: int, busy: int, activity: autoscale.QueueActivity) -> float | None:
    """Return the seconds that an execution takes: the mean of ended ones, or else the mean so far of running ones."""
    so_far = activity.run_so_far / activity.running / SECOND if activity.running else 0.0
    if not ended:
        return so_far or None
    return busy / ended / SECOND
