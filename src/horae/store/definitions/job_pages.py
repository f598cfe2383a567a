"""Pages of jobs that match a filter. The statement for each combination of conditions is built once."""

from functools import cache
from uuid import UUID

from msgspec import Struct

from horae.model.definitions.job import Spec, search_pattern, tag_pattern
from horae.store.definitions.jobs import FROM, JOB, StoredJob, stored
from horae.store.script import Fetch, Script, Statement

# The condition of each part of a filter. Each `?` stands for one of the values of this part, in their order.
CONDITIONS = {
    "deleted": "j.state <> 'deleted'",
    "plain": "j.owner IS NULL",
    "owner": "j.owner = ?",
    # The second condition is redundant, but makes SQLite use the index of names.
    "is active": "j.state = 'active' AND j.state <> 'deleted'",
    "is paused": "j.state = 'paused'",
    "is deleted": "j.state = 'deleted'",
    "prefix": "substr(j.name, 1, length(?)) = ?",
    "search": "j.words LIKE ? ESCAPE '/'",
    "tag": "j.words LIKE ? ESCAPE '/'",
    "queue": "v.queue IN (SELECT q.id FROM queues q WHERE q.namespace = j.namespace AND q.name = ?)",
    "after": "(j.name, j.id) > (?, ?)",
}


class JobFilter(Struct, frozen=True, kw_only=True):
    """A filter of job lists."""

    search: str | None = None  # a part of the text for searches: name, description and tags
    prefix: str | None = None  # the beginning of the name
    state: str | None = None
    tag: tuple[str, str | None] | None = None  # a tag's name, and its value or None for any value
    queue: str | None = None
    owner: UUID | None = None  # only jobs that this workflow owns for its steps
    owned: bool = False  # include jobs that workflows own

    def matches_exactly(self, spec: Spec) -> bool:
        """Check `search` and `tag` exactly, because LIKE ignores case on SQLite."""
        if self.search and search_pattern(self.search) not in spec.words:
            return False
        if self.tag is None:
            return True
        name, value = self.tag
        return name in spec.tags and (value is None or spec.tags[name] == value)


def page(namespace: int, wanted: JobFilter, after: tuple[str, UUID] | None, limit: int) -> Script[list[StoredJob]]:
    """Return up to `limit` jobs in the order of their names, from the name and id `after` on.

    The caller checks each with `wanted.matches_exactly`.
    """
    values: dict[str, tuple[object, ...]] = {"deleted" if wanted.state is None else f"is {wanted.state}": ()}
    if wanted.owner is not None:
        values["owner"] = (wanted.owner,)
    elif not wanted.owned:
        values["plain"] = ()
    if wanted.prefix:
        values["prefix"] = (wanted.prefix, wanted.prefix)
    if wanted.search:
        values["search"] = (_containing(search_pattern(wanted.search)),)
    if wanted.tag:
        values["tag"] = (_containing(tag_pattern(*wanted.tag)),)
    if wanted.queue is not None:
        values["queue"] = (wanted.queue,)
    if after is not None:
        values["after"] = after
    given = [value for some in values.values() for value in some]
    rows = yield Fetch(_statement(tuple(values)), (namespace, limit, *given))
    return [stored(row) for row in rows]


@cache
def _statement(filters: tuple[str, ...]) -> Statement:
    text = " AND ".join(["j.namespace = $1", *(CONDITIONS[name] for name in filters)])
    first, *rest = text.split("?")
    numbered = first + "".join(f"${place}{part}" for place, part in enumerate(rest, 3))
    return Statement("job_page", f"SELECT {JOB} {FROM} WHERE {numbered} ORDER BY j.name, j.id LIMIT $2")


def _containing(text: str) -> str:
    """Return a LIKE pattern that matches all texts containing this text."""
    for special in "/%_":
        text = text.replace(special, f"/{special}")
    return f"%{text}%"
