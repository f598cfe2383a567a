"""A server's cache of jobs, with the versions from which an active rollout chooses."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from msgspec import structs

from horae.engine.base.refs import find_job
from horae.env import Env
from horae.errors import NotFound
from horae.model.definitions.rollout import VersionChoice
from horae.store.contract import Store
from horae.store.definitions import rollouts
from horae.store.definitions.jobs import StoredJob

MOST_JOBS = 10_000
_RESTORE = "Bring it back with `horae jobs restore {}`."


class JobCache:
    """Jobs by name or id. A job stays cached until a hint, or until a submission finds that it has changed."""

    def __init__(self, store: Store, load_lane: Callable[[StoredJob], Awaitable[None]]) -> None:
        """`load_lane` makes the queue and the lane of a job known before the job is cached."""
        self._store, self._load_lane = store, load_lane
        self._cached: OrderedDict[tuple[int, str], StoredJob] = OrderedDict()

    def cached(self, namespace: int, ref: str) -> StoredJob | None:
        """Return a cached job, or None. Nothing is read from the store."""
        return self._cached.get((namespace, ref))

    async def get(self, namespace: int, ref: str) -> StoredJob:
        """Return a job from memory or from the store. Raises NotFound."""
        known = self.cached(namespace, ref)
        if known is not None:
            return known
        stored = await find_job(self._store, namespace, ref)
        if stored.job.state == "deleted":
            taken = await self._store.job_named(namespace, stored.job.name) is not None
            remedy = "Another job has its name now: name that one." if taken else _RESTORE.format(ref)
            raise NotFound(f"Job {ref} was deleted.", remedy, job=ref)
        if stored.rolling is not None:
            stored = await with_choice(self._store, stored)
        await self._load_lane(stored)
        self._cached[namespace, ref] = stored
        if len(self._cached) > MOST_JOBS:
            self._cached.popitem(last=False)
        return stored

    def forget(self, job: UUID) -> None:
        """Drop a job from the cache, so that it is read again."""
        for key in [key for key, stored in self._cached.items() if stored.job.id == job]:
            del self._cached[key]


async def with_choice(store: Store, stored: StoredJob) -> StoredJob:
    """Return a job with the versions (arms) from which its rollout chooses; unchanged if the rollout has ended."""
    job = stored.job
    found = (await store.read(lambda: rollouts.active_rollouts([job.id]))).get(job.id)
    if found is None:
        return stored
    rollout, arms = found
    versions = {
        version: structs.replace(
            stored,
            job=structs.replace(job, version=version, spec=arm.spec),
            queue=arm.queue,
            lane=arm.lane,
            rolling=rollout.number,
            chosen=rollout.since,
        )
        for version, arm in arms.items()
    }
    choice = VersionChoice(rollout=rollout, current=job.version, arms=versions)
    return structs.replace(stored, rolling=rollout.number, choice=choice)


def arm_of(stored: StoredJob, item: bytes, tags: Mapping[str, str], env: Env) -> StoredJob:
    """Return the version that an execution runs: the current one, unless a rollout chooses another."""
    if stored.choice is None:
        return stored
    return stored.choice.of(stored.job.spec, item, tags, env.new_id) or stored
