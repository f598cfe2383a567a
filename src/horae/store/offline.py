"""Changes of a store that no server has open."""

from horae.env import Instant
from horae.errors import Conflict, NotFound
from horae.store.checkup import schema_version
from horae.store.definitions import jobs
from horae.store.driver import Driver
from horae.store.migrations.revisions import HEAD
from horae.store.script import Script
from horae.store.tenancy import namespaces
from horae.store.triggers import streaks


async def pause_job(driver: Driver, namespace: str, name: str, reason: str, now: Instant) -> bool:
    """Pause a job; return False when it was not active.

    Raises NotFound, or Conflict if the store has another revision than this program needs.
    """
    version = await schema_version(driver)
    if version != HEAD:
        message = f"The store is at revision {version or 'none'}, and this program needs {HEAD}."
        raise Conflict(
            message, "Use the version of Horae to which this store belongs, or run `horae db upgrade` first."
        )

    def script() -> Script[bool]:
        space = yield from namespaces.by_name(namespace)
        if space is None:
            raise NotFound(f'There is no namespace named "{namespace}".', "Name another with --namespace.")
        stored = yield from jobs.by_name(space.id, name)
        if stored is None:
            raise NotFound(f'There is no job named "{name}" in "{namespace}".', "Check its name and --namespace.")
        return (yield from streaks.pause_for(stored.job.id, reason, now)) is not None

    return await driver.write(script)
