"""References in requests: a job by name or id, an execution by id; and the errors for unknown references."""

from collections.abc import Sequence
from difflib import get_close_matches
from uuid import UUID

from horae.engine.definitions.permits import ACTOR, check_name, visible
from horae.env import Instant, Micros
from horae.errors import BadInput, Gone, NotFound
from horae.model.base.ids import instant_of
from horae.model.base.instant import END_OF_RANGE, parse_instant
from horae.model.fields.values import NAME
from horae.model.workflows.decisions.naming import OWNED
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.definitions.jobs import StoredJob


def as_id(ref: str | UUID) -> UUID | None:
    """Return a text as an id, or None if it is not an id."""
    if isinstance(ref, UUID):
        return ref
    try:
        return UUID(ref)
    except ValueError:
        return None


async def find_job(store: Store, namespace: int, ref: str | UUID) -> StoredJob:
    """Return a job by name or id; a deleted job by id only. Raises NotFound with the nearest names, and Forbidden."""
    check_name(str(ref))
    key = job_ref(ref)
    stored = await (store.job(key, namespace) if isinstance(key, UUID) else store.job_named(namespace, key))
    if stored is None:
        raise await no_such_job(store, namespace, str(ref))
    return stored


def job_ref(ref: str | UUID) -> UUID | str:
    """Return a reference as a job's id or name. Raises NotFound when it can be neither."""
    job_id = as_id(ref)
    if job_id is not None:
        return job_id
    if not NAME.fullmatch(str(ref)) and not OWNED.fullmatch(str(ref)):
        raise NotFound(f"{str(ref)[:60]!r} is neither a job's name nor an id.", _LIST, job=str(ref)[:128])
    return str(ref)


async def no_such_job(store: Store, namespace: int, ref: str) -> NotFound:
    """Return the error for an unknown or deleted job."""
    shown = ref[:128]
    if as_id(ref):
        return NotFound(f"No job has the id {shown}.", _LIST, job=shown)
    deleted = await store.read(lambda: job_reads.last_deleted(namespace, ref))
    if deleted is not None and not ACTOR.get().queues:
        return NotFound(f'Job "{shown}" was deleted.', f"Bring it back with `horae jobs restore {shown}`.", job=shown)
    near = nearest(ref, visible(await store.read(lambda: job_reads.names(namespace))))
    return NotFound(f'No job named "{shown}".', f"Did you mean {in_quotes(near)}?" if near else _LIST, job=shown)


_LIST = "List jobs with `horae jobs list` or GET /api/v1/jobs."


def nearest(name: str, names: Sequence[str]) -> list[str]:
    return get_close_matches(name[:128], names, n=3, cutoff=0.7)


def in_quotes(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)


def execution_ref(ref: str | UUID) -> UUID:
    """Return a reference as an execution's id. Raises NotFound for anything else."""
    parsed = as_id(ref)
    if parsed is None:
        remedy = (
            "An execution id looks like 0195c1d2-7a3b-7c4d-8e5f-0123456789ab; list them with `horae executions list`."
        )
        raise NotFound(f'"{str(ref)[:60]}" is not an execution id.', remedy)
    return parsed


def no_such_execution(
    missing: UUID, now: Instant, retention: Micros, oldest: UUID | None, begun: Instant
) -> NotFound | Gone:
    """Return the error for a missing execution: Gone if it was probably deleted after its retention, else NotFound.

    It was probably deleted if its id was generated after the store was created (`begun`), but before the retention
    began or before the `oldest` stored parcel.
    """
    created_at = instant_of(missing)
    kept_since = max(now - retention, instant_of(oldest) if oldest else 0)
    if missing.version == 7 and begun <= created_at < kept_since:
        remedy = "It is older than the retention. If it was archived: `horae executions list --archive`."
        return Gone(f"Execution {missing} has expired.", remedy, executionId=str(missing))
    remedy = "List them with `horae executions list`."
    return NotFound(f"There is no execution {missing}.", remedy, executionId=str(missing))


def time_bound(value: str | int | None, field: str) -> Instant | None:
    """Return a `since` or `until` as an instant. Texts are in RFC 3339."""
    if value is None or isinstance(value, int):
        return None if value is None else max(0, min(value, END_OF_RANGE))
    return parse_instant(value, field=field)


def tag_ref(tag: str | None) -> tuple[str, str | None] | None:
    """Parse a tag filter: "name" or "name=value"."""
    if tag is None:
        return None
    name, equals, value = tag.partition("=")
    if not name:
        raise BadInput(f"{tag[:60]!r} is not a tag filter.", 'Write "name" or "name=value".', field="tag")
    return name, value if equals else None
