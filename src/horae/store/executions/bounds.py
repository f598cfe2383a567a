"""Bounds of time that are remembered beside new parcels, for those whose jobs have them."""

from collections.abc import Sequence

from msgspec import structs

from horae.model.executions.parcel import Parcel
from horae.store.base.shelves import Columns
from horae.store.script import Insert

COLUMNS: Columns = (
    ("parcel", "uuid"), ("at", "bigint"), ("due_at", "bigint"), ("queue_for", "bigint"), ("total_for", "bigint"),
)  # fmt: skip


def bounded(parcels: Sequence[tuple[Parcel, int]]) -> list[Insert]:
    """What to write beside new parcels: nothing, unless their jobs bound the queue's time or the whole."""
    patient = [
        (p.id, structs.replace(p.envelope.bounds, due_at=p.envelope.due_at)) for p, _ in parcels if p.envelope.bounds
    ]
    rows = [(id, one.first_look, one.due_at, one.queue, one.total) for id, one in patient]
    return [Insert("timeouts", COLUMNS, rows)] if rows else []
