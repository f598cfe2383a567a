"""Locks by a name instead of a row; a transaction holds them until its end.

Here are only names that several modules use. Take several locks in one call, so that they are taken in sorted order.
"""

from horae.store.script import Lock, Script


def take(*names: str, shared: str = "") -> Script[None]:
    """Take these locks; the `shared` one excludes only transactions that take it as a plain name."""
    yield Lock(names, shared=shared)


def of_namespace(namespace: int) -> str:
    """Return the lock that changes share while they add lasting rows to a namespace; its deletion excludes them."""
    return f"namespace:{namespace}"


def of_dependencies(namespace: int) -> str:
    """Return the lock for changes of the upstreams of a job, of the jobs of its steps, or of its template."""
    return f"dependencies:{namespace}"


def of_calendars(namespace: int) -> str:
    """Return the lock for changes of calendars, and for changes that refer to one."""
    return f"calendars:{namespace}"


def of_job_name(namespace: int, name: str) -> str:
    """Return the lock for changes that give a name to a job, so that the second change reads the first."""
    return f"job-name:{namespace}:{name}"
