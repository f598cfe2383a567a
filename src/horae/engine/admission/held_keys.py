"""Held keys: the keys of a job's limits and sequences that executions hold."""

from typing import Literal

from horae.engine.base.refs import find_job
from horae.model.admission.held_key_view import HeldKeyView
from horae.model.admission.limits import LIMIT, OWN, template_of, value_in, with_own
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.view import Page
from horae.model.definitions.job import Job
from horae.store.admission import limit_reads
from horae.store.admission.limit_reads import HeldKey
from horae.store.contract import Store

MOST_KEYS = 100  # in one page, even if more are requested: each costs a read
MOST_NAMED = 10  # executions that are named for each key
KINDS: tuple[Literal["limit", "sequence"], ...] = ("limit", "sequence")  # in the order in which their keys sort


class HeldKeys:
    """Reads held keys."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, namespace: int, ref: str, *, limit: int = 50, cursor: str | None = None) -> Page[HeldKeyView]:
        """Return the held keys of a job in order, including the key of a limit of the whole job."""
        job = (await find_job(self._store, namespace, ref)).job
        after, size = read_cursor(cursor, str) if cursor else "", min(check_limit(limit), MOST_KEYS)
        found: list[HeldKey] = []
        for kind in KINDS:
            most = size + 1 - len(found)
            if most > 0 and after.partition(":")[0] <= kind:
                found += await self._store.read(
                    lambda: limit_reads.held_keys(kind, job.id, after, most, MOST_NAMED)  # noqa: B023
                )
        items = found[:size]
        more = len(found) > size
        return Page(
            items=[_shown(held, job) for held in items], next_cursor=make_cursor(items[-1].key) if more else None
        )


def _shown(held: HeldKey, job: Job) -> HeldKeyView:
    spec = job.spec
    is_sequence = held.key.startswith("sequence:")
    limit = None if is_sequence else template_of(held.key, with_own(spec.limits, spec.concurrency, spec.rate))
    allowed = {} if limit is None else LIMIT.write(limit)
    return HeldKeyView(
        kind="sequence" if is_sequence else "job" if limit is not None and limit.key == OWN else "key",
        key=(spec.sequence or None) if is_sequence else None if limit is None else limit.key or None,
        value=value_in(held.key),
        concurrency=1 if is_sequence else allowed.get("concurrency"),
        rate=allowed.get("rate"),
        used=held.used,
        waited_for=held.waited_for,
        holders=held.holders,
    )
