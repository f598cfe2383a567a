"""The choice of a job's version for a submission while a rollout is on."""

from collections.abc import Mapping

from msgspec import structs

from horae.env import Env
from horae.model.definitions.rollout import VersionChoice
from horae.store.contract import Store
from horae.store.definitions import rollouts
from horae.store.definitions.jobs import StoredJob


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
