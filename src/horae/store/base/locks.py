"""Locks with a name instead of a row: a transaction that takes one holds it until its end.

Only the names that several modules use are here. Whoever takes several of them takes them at once, so that they are
taken in sorted order.
"""

from horae.store.script import Lock, Script


def take(*names: str, shared: str = "") -> Script[None]:
    """Take these locks; the `shared` one keeps out only those who take it alone."""
    yield Lock(names, shared=shared)


def of_namespace(namespace: int) -> str:
    """Shared by changes that put something lasting into a namespace; its deletion takes it alone."""
    return f"namespace:{namespace}"


def of_dependencies(namespace: int) -> str:
    """Held by changes of the jobs that a job depends on, runs as steps, or of the template that it is made from."""
    return f"dependencies:{namespace}"


def of_calendars(namespace: int) -> str:
    """Held by changes of calendars, and by changes that refer to one."""
    return f"calendars:{namespace}"


def of_job_name(namespace: int, name: str) -> str:
    """Held by changes that give a name to a job, so that the second one reads the first."""
    return f"job-name:{namespace}:{name}"
