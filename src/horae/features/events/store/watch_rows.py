"""Where a watch begins: a row that says when to look at a place."""

from uuid import UUID

from horae.env import Instant
from horae.model.triggers.decisions.external import Watch, watch_id
from horae.store.script import Fetch, Script, Statement

# A place that was watched before under the same name goes on: what it fired it does not fire again.
BEGIN = Statement(
    "begin_watch",
    "INSERT INTO watches (id, trigger_id, job, namespace, began_at, next_poll_at) VALUES ($1, $2, $3, $4, $5, $5)"
    " ON CONFLICT (id) DO UPDATE SET trigger_id = excluded.trigger_id, next_poll_at = excluded.next_poll_at,"
    " trouble = NULL",
)


def begin(trigger_id: UUID, job: UUID, name: str, namespace: int, place: Watch, now: Instant) -> Script[None]:
    """Look at a place from now on."""
    yield Fetch(BEGIN, (watch_id(job, name, place.url), trigger_id, job, namespace, now))
