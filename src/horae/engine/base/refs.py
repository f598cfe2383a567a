"""References people give: a job by name or id, an execution by id; and what to answer when there is none."""

from collections.abc import Sequence
from difflib import get_close_matches
from uuid import UUID

from horae.engine.definitions.permits import ACTING, check_name, visible
from horae.env import Instant, Micros
from horae.errors import BadInput, Gone, NotFound
from horae.model.base.ids import instant_of
from horae.model.base.instant import LATEST, parse_instant
from horae.model.fields.values import NAME
from horae.model.workflows.decisions.naming import OWNED
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.definitions.jobs import StoredJob


def as_id(ref: str | UUID) -> UUID | None:
    """The id a text stands for, if it does."""
    if isinstance(ref, UUID):
        return ref
    try:
        return UUID(ref)
    except ValueError:
        return None


async def find_job(store: Store, namespace: int, ref: str | UUID) -> StoredJob:
    """Return a job by name or id; deleted ones by id only. Raises NotFound with the nearest names, Forbidden."""
    check_name(str(ref))
    key = job_ref(ref)
    stored = await (store.job(key, namespace) if isinstance(key, UUID) else store.job_named(namespace, key))
    if stored is None:
        raise await no_such_job(store, namespace, str(ref))
    return stored


def job_ref(ref: str | UUID) -> UUID | str:
    """A job's id or name. Raises NotFound: what is neither names nothing."""
    id = as_id(ref)
    if id is not None:
        return id
    if not NAME.fullmatch(str(ref)) and not OWNED.fullmatch(str(ref)):
        raise NotFound(f"{str(ref)[:60]!r} is neither a job's name nor an id.", _LIST, job=str(ref)[:128])
    return str(ref)


async def no_such_job(store: Store, namespace: int, ref: str) -> NotFound:
    """What to answer about a job that is not there."""
    shown = ref[:128]
    if as_id(ref):
        return NotFound(f"No job has the id {shown}.", _LIST, job=shown)
    deleted = await store.read(lambda: job_reads.last_deleted(namespace, ref))
    if deleted is not None and not ACTING.get().queues:
        return NotFound(f'Job "{shown}" was deleted.', f"Bring it back with `horae jobs restore {shown}`.", job=shown)
    near = nearest(ref, visible(await store.read(lambda: job_reads.names(namespace))))
    return NotFound(f'No job named "{shown}".', f"Did you mean {in_quotes(near)}?" if near else _LIST, job=shown)


_LIST = "List jobs with `horae jobs list` or GET /api/v1/jobs."


def nearest(name: str, names: Sequence[str]) -> list[str]:
    return get_close_matches(name[:128], names, n=3, cutoff=0.7)


def in_quotes(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)


def execution_ref(ref: str | UUID) -> UUID:
    """An execution's id. Raises NotFound: what is no id names nothing."""
    id = as_id(ref)
    if id is None:
        remedy = (
            "An execution id looks like 0195c1d2-7a3b-7c4d-8e5f-0123456789ab; list them with `horae executions list`."
        )
        raise NotFound(f'"{str(ref)[:60]}" is not an execution id.', remedy)
    return id


def no_such_execution(
    id: UUID, now: Instant, retention: Micros, oldest: UUID | None, begun: Instant
) -> NotFound | Gone:
    """Gone when its id was made in this store's time and before all that is kept; else it never was."""
    made = instant_of(id)
    kept = max(now - retention, instant_of(oldest) if oldest else 0)
    if id.version == 7 and begun <= made < kept:
        remedy = "It is older than what is kept. If it was archived: `horae executions list --archive`."
        return Gone(f"Execution {id} has expired.", remedy, executionId=str(id))
    return NotFound(f"There is no execution {id}.", "List them with `horae executions list`.", executionId=str(id))


def time_bound(value: str | int | None, field: str) -> Instant | None:
    """A `since` or `until`: RFC 3339 or an instant."""
    if value is None or isinstance(value, int):
        return None if value is None else max(0, min(value, LATEST))
    return parse_instant(value, field=field)


def tag_ref(tag: str | None) -> tuple[str, str | None] | None:
    """A tag filter: "name" or "name=value"."""
    if tag is None:
        return None
    name, equals, value = tag.partition("=")
    if not name:
        raise BadInput(f"{tag[:60]!r} is not a tag filter.", 'Write "name" or "name=value".', field="tag")
    return name, value if equals else None
