"""Advisory locks: a transaction locks names instead of rows, and holds the locks until its end.

The functions `of_...` return the names of locks that several modules use. Take several locks in one call of `take`: it
sorts them, so that transactions do not deadlock.
"""

from horae.store.script import Lock, Script


def take(*names: str, shared: str = "") -> Script[None]:
    """Lock these names; `shared` is locked in shared mode, which excludes only transactions that have it in `names`."""
    yield Lock(names, shared=shared)


def of_namespace(namespace: int) -> str:
    """Return the lock of a namespace.

    Changes that add jobs or alert rules to it take the lock in shared mode; its deletion takes the lock alone.
    """
    return f"namespace:{namespace}"


def of_dependencies(namespace: int) -> str:
    """Return the lock for changes of the references between jobs: to upstreams, to the jobs of steps, to templates."""
    return f"dependencies:{namespace}"


def of_calendars(namespace: int) -> str:
    """Return the lock for changes of calendars, and for changes of jobs and holds that refer to a calendar."""
    return f"calendars:{namespace}"


def of_user_name(name: str) -> str:
    """Return the lock for the addition of a user with this name in whatever case."""
    return f"user-name:{name.lower()}"


def of_job_name(namespace: int, name: str) -> str:
    """Return the lock for changes that give this name to a job, so that a second such change sees the first."""
    return f"job-name:{namespace}:{name}"
