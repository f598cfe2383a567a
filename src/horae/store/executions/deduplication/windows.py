"""Windows: each is an execution that waits for more submissions, to debounce them or to collect them into a batch.

While such an execution waits, no worker can have read its parcel, so its params may change. A transaction that changes
them holds the lock of the execution's row in `waiting`. When the execution leaves that shelf, the window is closed, and
the next submission opens another one.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.keys import flags_of
from horae.model.base.ids import parcel_id
from horae.model.executions.deduplication import Batch, Debounce, extend_batch, fits, start_batch
from horae.model.executions.parcel import Parcel, encode_extras, make_parcel
from horae.model.executions.slice import WaitingSlice
from horae.model.executions.submission import NewExecution
from horae.store.base import shelves
from horae.store.executions.parcels import insert_parcels, insert_timeouts
from horae.store.script import ForEach, Insert, Script, Statement
from horae.store.triggers.dependencies.starts import NewId

Kind = Literal["debounce", "batch"]
REASONS: tuple[Kind, ...] = ("debounce", "batch")  # reasons of waiting, as stored
# SKIP LOCKED: a transaction that has locked such a row moves the execution to another shelf, which closes the window.
OPEN = Statement(
    "open_windows",
    "SELECT w.parcel, length(p.items), w.width, w.flags FROM given JOIN waiting w ON w.parcel = given.parcel"
    " AND w.reason = given.kind JOIN parcels p ON p.id = w.parcel FOR UPDATE OF w SKIP LOCKED",
)
MOVE = Statement(
    "move_windows",
    "UPDATE waiting SET wake_at = given.wake_at, width = given.width, flags = given.flags FROM given"
    " WHERE waiting.parcel = given.parcel AND waiting.lo = 0",
)
REPLACE = Statement(
    "replace_params",
    "UPDATE parcels SET items = given.items, extras = given.extras, lane = given.lane, priority = given.priority,"
    " deadline = given.deadline, keys = given.keys FROM given WHERE parcels.id = given.parcel",
)
APPEND = Statement(
    "append_items",
    "UPDATE parcels SET items = CAST(substr(items, 1, length(items) - 2) || given.more AS bytea) FROM given"
    " WHERE parcels.id = given.parcel",
)
_PLACE: shelves.Columns = (("parcel", "uuid"), ("kind", "text"))
_MOVED: shelves.Columns = (("parcel", "uuid"), ("wake_at", "bigint"), ("width", "int"), ("flags", "smallint"))
_REPLACED: shelves.Columns = (
    ("parcel", "uuid"), ("items", "bytea"), ("extras", "bytea"), ("lane", "int"), ("priority", "smallint"),
    ("deadline", "bigint"), ("keys", "text"),
)  # fmt: skip


class OpenWindow(Struct, kw_only=True):
    """An open window, including the submissions that joined it in this transaction."""

    parcel: UUID
    kind: Kind
    opened_at: Instant
    count: int  # submissions in it
    size: int  # bytes of its params
    width: int  # the bytes of its params and extras, as in a slice
    flags: int = 0
    wake_at: Instant = 0
    is_new: bool = False
    source: NewExecution | None = None  # provides the envelope, the extras and, unless it is a batch, the params
    items: list[bytes] = []  # params of the submissions that joined in this transaction

    @property
    def params(self) -> bytes:
        """Return the params of a new window."""
        assert self.source is not None
        return extend_batch(start_batch(self.items[0]), self.items[1:]) if self.kind == "batch" else self.source.item

    def join(self, one: NewExecution, rule: Debounce | Batch, now: Instant) -> int:
        """Add a submission; return its index in the window."""
        place, self.count = self.count, self.count + 1
        if isinstance(rule, Batch):
            self.source = self.source or one
            self.items.append(one.item)
            more = len(one.item) + 1
            self.size, self.width = self.size + more, self.width + more
            self.wake_at = now if self.count >= rule.size else self.opened_at + rule.wait
        else:
            if rule.keep == "latest" or (self.source is None and self.is_new):
                self.source = one
            self.wake_at = rule.starts_at(self.opened_at, now)
        return place

    def has_room(self, one: NewExecution, rule: Debounce | Batch) -> bool:
        """Tell whether the window has room for a submission."""
        return not isinstance(rule, Batch) or fits(rule, self.count, self.size, one.item)


def new_window(one: NewExecution, rule: Debounce | Batch, new_id: NewId, now: Instant) -> OpenWindow:
    """Return a new window with its first submission."""
    kind: Kind = "batch" if isinstance(rule, Batch) else "debounce"
    window = OpenWindow(
        parcel=parcel_id(new_id()), kind=kind, opened_at=now, count=0, size=len(start_batch(b"")), width=0, is_new=True
    )
    window.join(one, rule, now)
    return window


def lock_open(rows: Sequence[tuple[UUID, Kind, Instant, int]]) -> Script[dict[UUID, OpenWindow]]:
    """Lock the windows (parcel, kind, opened_at, count) that are still open, and return them by parcel."""
    if not rows:
        return {}
    given = {row[0]: row for row in rows}
    held = yield ForEach(OPEN, _PLACE, sorted((parcel, kind) for parcel, kind, _, _ in rows))
    return {
        parcel: OpenWindow(
            parcel=parcel, kind=given[parcel][1], opened_at=given[parcel][2], count=given[parcel][3], size=size,
            width=width, flags=flags,
        )
        for parcel, size, width, flags in held
    }  # fmt: skip


class WindowChanges(Struct, frozen=True):
    """The changes that store windows, the parcels of new windows, and the earliest instant at which a window ends."""

    changes: list[ForEach | Insert]
    parcels: list[Parcel]
    wake_at: Instant | None


def write(windows: Sequence[OpenWindow], now: Instant) -> WindowChanges:
    """Return the changes that store new and changed windows."""
    new = [(window, _parcel(window, now)) for window in windows if window.is_new]
    old = [window for window in windows if not window.is_new]
    fresh = [(parcel, 0) for _, parcel in new]
    changes = [insert_parcels(fresh), shelves.put_waiting([_waits(*one) for one in new]), *insert_timeouts(fresh)]
    wake_at = min((window.wake_at for window in windows), default=None)
    return WindowChanges([*changes, *_changes(old)], [parcel for _, parcel in new], wake_at)


def _parcel(window: OpenWindow, now: Instant) -> Parcel:
    assert window.source is not None
    envelope = structs.replace(window.source.envelope, due_at=now)
    return make_parcel(window.parcel, envelope, (window.params,), (window.source.extra,), now)


def _waits(window: OpenWindow, p: Parcel) -> WaitingSlice:
    e = p.envelope
    return WaitingSlice(
        parcel=p.id, lo=0, hi=1, job=e.job, queue=e.queue, namespace=e.namespace, width=p.width,
        flags=flags_of(e.keys), wake_at=window.wake_at, reason=window.kind,
    )  # fmt: skip


def _changes(old: Sequence[OpenWindow]) -> Iterator[ForEach]:
    moved: list[tuple[Any, ...]] = []
    replaced: list[tuple[Any, ...]] = []
    appended: list[tuple[Any, ...]] = []
    for window in old:
        lead = window.source
        if window.kind == "batch":
            appended.append((window.parcel, b"".join(b"," + item for item in window.items) + b"]}"))
        elif lead is not None:
            e, extras = lead.envelope, encode_extras((lead.extra,))
            window.width, window.flags = len(lead.item) + len(extras or b""), flags_of(e.keys)
            replaced.append((window.parcel, lead.item, extras, e.lane, e.priority, e.deadline, e.keys))
        moved.append((window.parcel, window.wake_at, window.width, window.flags))
    yield ForEach(MOVE, _MOVED, moved)
    yield ForEach(REPLACE, _REPLACED, replaced)
    yield ForEach(APPEND, (("parcel", "uuid"), ("more", "bytea")), appended)
