"""Locks with a name instead of a row; a transaction holds them until its end.

Only names that several modules use are here. Take several of them in one call, so that they are taken in sorted order.
"""

from horae.store.script import Lock, Script


def take(*names: str, shared: str = "") -> Script[None]:
    """Take these locks; the `shared` one excludes only transactions that take it alone."""
    yield Lock(names, shared=shared)


def of_namespace(namespace: int) -> str:
    """Shared by changes that add lasting rows to a namespace; the namespace's deletion takes it alone."""
    return f"namespace:{namespace}"


def of_dependencies(namespace: int) -> str:
    """Held by changes of the upstreams of a job, of the jobs that it runs as steps, or of its template."""
    return f"dependencies:{namespace}"


def of_calendars(namespace: int) -> str:
    """Held by changes of calendars, and by changes that refer to one."""
    return f"calendars:{namespace}"


def of_job_name(namespace: int, name: str) -> str:
    """Held by changes that give a name to a job, so that the second one reads the first."""
    return f"job-name:{namespace}:{name}"
