"""Jobs that workflows own for their steps, and the jobs that a workflow runs.

A workflow owns a job for each step with options of its own. Such a job may be a copy of another job, its base. Each
change of a workflow or of a base holds the lock of the namespace's dependencies, so that data that is read under the
lock stays true until the commit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.definitions.job import Spec
from horae.store.base.shelves import Columns
from horae.store.definitions.jobs import path_back
from horae.store.script import Among, Fetch, ForEach, Insert, Row, Script, Statement

_OWNED = (
    "SELECT j.id, j.owner, j.name, j.version, v.spec, j.base, j.own, v.queue, v.lane FROM jobs j"
    " JOIN job_versions v ON v.job = j.id AND v.version = j.version"
)
# Jobs that were deleted together with their workflow have `deleted_from`. Jobs that an edit of the workflow removed
# have none, and stay deleted.
OF_OWNERS = Statement(
    "owned_jobs", f"{_OWNED} WHERE j.owner = ANY($1) AND (j.state <> 'deleted' OR j.deleted_from IS NOT NULL)"
)
COPIES = Statement("jobs_made_from", f"{_OWNED} WHERE j.base = $1 AND j.state <> 'deleted'")
STANDING = Statement("versions_and_states", "SELECT j.id, j.version, j.state FROM jobs j WHERE j.id = ANY($1)")
CHANGE = Statement(
    "change_owned_jobs",
    "UPDATE jobs SET version = given.version, name = given.name, base = given.base, own = given.own,"
    " updated_at = given.at, words = given.words FROM given WHERE jobs.id = given.id",
)
DELETE = Statement(
    "delete_owned_jobs",
    "UPDATE jobs SET state = 'deleted', updated_at = given.at, deleted_at = given.at FROM given"
    " WHERE jobs.id = given.id AND jobs.state <> 'deleted'",
)
DELETE_ALL = Statement(
    "delete_all_owned_jobs",
    "UPDATE jobs SET state = 'deleted', deleted_from = state, updated_at = $2, deleted_at = $2"
    " WHERE owner = $1 AND state <> 'deleted'",
)
RESTORE_ALL = Statement(
    "restore_owned_jobs",
    "UPDATE jobs SET state = deleted_from, deleted_from = NULL, updated_at = $2, deleted_at = NULL"
    " WHERE owner = $1 AND state = 'deleted' AND deleted_from IS NOT NULL",
)
FORGET_USES = Statement("forget_uses", "DELETE FROM uses WHERE job = ANY($1)")
USERS = Statement(
    "workflows_that_run",
    "SELECT DISTINCT coalesce(o.name, j.name) AS name FROM uses u JOIN jobs j ON j.id = u.job"
    " LEFT JOIN jobs o ON o.id = j.owner WHERE u.used = $1 AND j.state <> 'deleted' AND coalesce(o.id, j.id) <> $1"
    " ORDER BY name LIMIT 100",
)
BELOW = Statement(
    "used_below",
    "WITH RECURSIVE below(job, used) AS (SELECT u.job, u.used FROM uses u WHERE u.job = $1 UNION"
    " SELECT u.job, u.used FROM uses u JOIN below ON u.job = below.used) SELECT job, used FROM below",
)
OWNERS = Statement(
    "owners_of_jobs",
    "SELECT j.id, o.id, o.name, j.base FROM jobs j JOIN jobs o ON o.id = j.owner WHERE j.id = ANY($1)",
)
CHANGED: Columns = (
    ("id", "uuid"), ("version", "int"), ("name", "text"), ("base", "uuid"), ("own", "text"), ("at", "bigint"),
    ("words", "text"),
)  # fmt: skip
ADDED: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("name", "text"), ("version", "int"), ("state", "text"),
    ("created_at", "bigint"), ("updated_at", "bigint"), ("owner", "uuid"), ("base", "uuid"), ("own", "text"),
    ("words", "text"),
)  # fmt: skip
VERSIONS: Columns = (
    ("job", "uuid"), ("version", "int"), ("spec", "text"), ("queue", "int"), ("lane", "int"), ("created_at", "bigint"),
)  # fmt: skip


class OwnedJob(Struct, frozen=True, kw_only=True):
    """A job that a workflow owns for one of its steps."""

    id: UUID
    owner: UUID
    name: str
    version: int
    spec: Spec
    base: UUID | None  # the job of which it is a copy
    own: dict[str, Any]  # the fields of the definition that the step overrides
    queue: int
    lane: int


class PlacedJob(Struct, frozen=True, kw_only=True):
    """A version of an owned job to be written, with its queue and lane."""

    id: UUID
    owner: UUID
    name: str
    version: int
    spec: Spec
    base: UUID | None
    own: Mapping[str, Any]
    queue: int
    lane: int
    fresh: bool  # whether the job is new
    written: bool  # whether the version exists already, so that the job is only renamed


def of_owners(owners: Collection[UUID]) -> Script[list[OwnedJob]]:
    """Return the jobs that workflows own; of a deleted workflow, those that are restored with it."""
    return [_owned(row) for row in (yield Among(OF_OWNERS, sorted(owners)))] if owners else []


def copies_of(job: UUID) -> Script[list[OwnedJob]]:
    """Return the owned jobs that are copies of a job."""
    return [_owned(row) for row in (yield Fetch(COPIES, (job,)))]


def _owned(row: Row) -> OwnedJob:
    job, owner, name, version, spec, base, own, queue, lane = row
    return OwnedJob(
        id=job, owner=owner, name=name, version=version, spec=msgspec.json.decode(spec, type=Spec), base=base,
        own=msgspec.json.decode(own), queue=queue, lane=lane,
    )  # fmt: skip


def states_of(jobs: Collection[UUID]) -> Script[dict[UUID, tuple[int, str]]]:
    """Return the current versions and states of jobs."""
    return {job: (version, state) for job, version, state in (yield Among(STANDING, sorted(jobs)))} if jobs else {}


def put(jobs: Sequence[PlacedJob], namespace: int, now: Instant) -> Script[None]:
    """Write owned jobs: new ones, and new versions or names of existing ones."""
    fresh = [
        (j.id, namespace, j.name, j.version, "active", now, now, j.owner, j.base, _text(j.own), j.spec.words)
        for j in jobs
        if j.fresh
    ]
    changed = [(j.id, j.version, j.name, j.base, _text(j.own), now, j.spec.words) for j in jobs if not j.fresh]
    versions = [(j.id, j.version, _text(j.spec), j.queue, j.lane, now) for j in jobs if not j.written]
    if changed:
        yield ForEach(CHANGE, CHANGED, changed)
    if fresh:
        yield Insert("jobs", ADDED, fresh)
    if versions:
        yield Insert("job_versions", VERSIONS, versions)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def delete(jobs: Iterable[UUID], now: Instant) -> Script[None]:
    """Delete owned jobs for good; their running executions continue."""
    rows = [(job, now) for job in sorted(jobs)]
    if rows:
        yield ForEach(DELETE, (("id", "uuid"), ("at", "bigint")), rows)


def delete_all(owner: UUID, now: Instant) -> Script[None]:
    """Delete all jobs that a workflow owns, when it is deleted."""
    yield Fetch(DELETE_ALL, (owner, now))


def restore_all(owner: UUID, now: Instant) -> Script[None]:
    """Restore the jobs that were deleted with a workflow."""
    yield Fetch(RESTORE_ALL, (owner, now))


def use(uses: Mapping[UUID, Collection[UUID]], gone: Collection[UUID] = ()) -> Script[None]:
    """Replace the record of the jobs that each workflow runs. Workflows in `gone` run none."""
    known = sorted({*uses, *gone})
    if not known:
        return
    yield Among(FORGET_USES, known)
    rows = sorted((job, used) for job, mine in uses.items() for used in mine)
    if rows:
        yield Insert("uses", (("job", "uuid"), ("used", "uuid")), rows)


def users(job: UUID) -> Script[list[str]]:
    """Return the names of up to 100 other workflows that run a job."""
    return [row[0] for row in (yield Fetch(USERS, (job,)))]


def find_cycle(job: UUID) -> Script[list[UUID]]:
    """Return a path from a workflow back to itself, through workflows that it runs; empty if there is none."""
    edges: dict[UUID, list[UUID]] = {}
    for user, used in (yield Fetch(BELOW, (job,))):
        edges.setdefault(user, []).append(used)
    return path_back(job, edges)


class JobOwner(Struct, frozen=True):
    """The workflow that owns a job (`owner`, with its name), and the job of which the owned job is a copy."""

    owner: UUID
    name: str
    base: UUID | None


def owners_of(jobs: Collection[UUID]) -> Script[dict[UUID, JobOwner]]:
    """Return the owners of these jobs, without jobs that no workflow owns."""
    rows = (yield Among(OWNERS, sorted(jobs))) if jobs else []
    return {job: JobOwner(owner, name, base) for job, owner, name, base in rows}
