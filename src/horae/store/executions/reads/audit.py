"""Audit: it checks that each submitted item is on exactly one shelf, and that each item that is not final has an owner.

An owner is a live session, a due time or a gate. A page of parcels is read by one statement, and so in one snapshot: an
item that moves during the audit is seen exactly once. Pages follow the ids of parcels. The audit of a large store reads
one page per transaction.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from random import Random
from typing import Literal
from uuid import UUID

from msgspec import Struct, field

from horae.env import Instant, Micros
from horae.model.admission.keys import flags_of
from horae.model.executions.parcel import AT_MOST_ONCE
from horae.model.executions.settle import FinishedSlice
from horae.model.executions.slice import Slice, WaitingSlice, gaps
from horae.model.fleet.protocol import Failure
from horae.model.fleet.session import PRESENT
from horae.store.base import shelves
from horae.store.executions.leaving.leave import leave
from horae.store.executions.parcels import read_parcels
from horae.store.executions.reads import housekeeping
from horae.store.fleet import rescue
from horae.store.script import Fetch, ForEach, Lock, Row, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId

Kind = Literal[
    "missing",  # an item of a parcel is on no shelf
    "duplicate",  # an item is on two shelves
    "out-of-range",  # a slice has items that its parcel does not have
    "no-parcel",  # the parcel of a slice is missing
    "no-live-session",  # a slice is running, but its session has ended or is unknown
    "never-wakes",  # a slice is waiting without a wake time, a gate or a join
    "no-lane",  # a slice is queued in a lane that does not exist
    "overdue",  # something is due, and no service has handled it
    "attempt-mismatch",  # an attempt is recorded twice, or before it was granted
    "not-started",  # all dependencies of a job are met, but it was not started
    "workflow-mismatch",  # the stored state of a workflow contradicts its steps
]
Shelf = Literal["waiting", "queued", "running", "history", "attempts", "parcels", "joins"]

PAGE = 500  # parcels in a page
MOST = 100  # findings that are listed; further findings are only counted
PATIENCE: Micros = 60_000_000  # the delay after which a due slice or a silent session is a finding
FIRST, LAST = UUID(int=0), UUID(int=(1 << 128) - 1)
BEYOND = 1 << 16  # added to the last known attempt of a restored item, so that no attempt number is used twice

PAGE_END = Statement("audit_page_end", "SELECT id FROM parcels WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2")
ON_PAGE = Statement(
    "audit_page",
    "SELECT 'parcels' AS shelf, id AS parcel, 0 AS lo, n AS hi, 0 AS attempt, due_at AS at, '' AS note,"
    " CAST(NULL AS uuid) AS session FROM parcels WHERE id > $1 AND id <= $2"
    " UNION ALL SELECT 'waiting', parcel, lo, hi, attempt, wake_at, coalesce(gate, ''), CAST(NULL AS uuid)"
    " FROM waiting WHERE parcel > $1 AND parcel <= $2"
    " UNION ALL SELECT 'queued', q.parcel, q.lo, q.hi, q.attempt, q.expires_at,"
    " CASE WHEN l.id IS NULL THEN 'unknown' ELSE '' END, CAST(NULL AS uuid)"
    " FROM queued q LEFT JOIN lanes l ON l.id = q.lane WHERE q.parcel > $1 AND q.parcel <= $2"
    " UNION ALL SELECT 'running', r.parcel, r.lo, r.hi, r.attempt, coalesce(s.ended_at, s.last_seen),"
    " coalesce(s.state, 'unknown'), r.session"
    " FROM running r LEFT JOIN sessions s ON s.id = r.session WHERE r.parcel > $1 AND r.parcel <= $2"
    " UNION ALL SELECT 'history', parcel, lo, hi, attempt, completed_at, state, CAST(NULL AS uuid)"
    " FROM history WHERE parcel > $1 AND parcel <= $2"
    " UNION ALL SELECT 'attempts', parcel, lo, hi, attempt, ended_at, outcome, session"
    " FROM attempts WHERE parcel > $1 AND parcel <= $2",
)
WAKE = Statement(
    "audit_wake",
    "UPDATE waiting SET wake_at = $3 FROM given WHERE waiting.parcel = given.parcel AND waiting.lo = given.lo"
    " AND waiting.wake_at IS NULL AND waiting.gate IS NULL",
)


class Finding(Struct, frozen=True, kw_only=True):
    """A contradiction in the store about a range of items."""

    kind: Kind
    shelf: Shelf
    parcel: UUID
    lo: int
    hi: int
    detail: str
    session: UUID | None = None
    job: UUID | None = None  # the dependent job, in findings about joins


class ShelfSize(Struct):
    """The number of slices and items on a shelf."""

    slices: int = 0
    items: int = 0


class AuditReport(Struct):
    """The numbers of slices and items on the shelves, the number of findings of each kind, and the first findings."""

    shelves: dict[str, ShelfSize] = {}
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = []

    def count(self, row: "ShelfRow") -> None:
        amount = self.shelves.setdefault(row.shelf, ShelfSize())
        amount.slices += 1
        amount.items += row.hi - row.lo

    def find(self, finding: Finding) -> None:
        self.kinds[finding.kind] += 1
        if len(self.findings) < MOST:
            self.findings.append(finding)

    def add(self, other: "AuditReport") -> None:
        """Add the report of another page."""
        for shelf, amount in other.shelves.items():
            mine = self.shelves.setdefault(shelf, ShelfSize())
            mine.slices += amount.slices
            mine.items += amount.items
        self.kinds += other.kinds
        self.findings += other.findings[: MOST - len(self.findings)]


class ShelfRow(Struct, frozen=True):
    """A row that the audit reads: a range of items of a parcel on a shelf.

    `at` is the instant at which the items are due, expire or ended, or at which their session was last seen or ended.
    `note` is the gate, the state of the session or of the items, or "unknown" for a lane that does not exist.
    """

    shelf: Shelf
    parcel: UUID
    lo: int
    hi: int
    attempt: int
    at: Instant | None
    note: str
    session: UUID | None

    def finding(self, kind: Kind, detail: str) -> Finding:
        return Finding(
            kind=kind, shelf=self.shelf, parcel=self.parcel, lo=self.lo, hi=self.hi, detail=detail, session=self.session
        )


def audit_page(
    after: UUID, now: Instant, patience: Micros | None = PATIENCE, parcels: int = PAGE
) -> Script[tuple[AuditReport, UUID | None]]:
    """Audit the parcels that follow an id; return the id after which the next page begins, None after the last."""
    ends = yield Fetch(PAGE_END, (after, parcels - 1))
    end = ends[0][0] if ends else None
    rows = yield Fetch(ON_PAGE, (after, end or LAST))
    report = AuditReport()
    for parcel, on_shelves in _by_parcel(rows):
        for row in on_shelves:
            report.count(row)
        for finding in check_parcel(parcel, on_shelves, now, patience):
            report.find(finding)
    return report, end


def _by_parcel(rows: Sequence[Row]) -> Iterator[tuple[UUID, list[ShelfRow]]]:
    on_shelves = sorted((ShelfRow(*row) for row in rows), key=lambda row: (row.parcel, row.lo))
    for parcel, group in groupby(on_shelves, key=lambda row: row.parcel):
        yield parcel, list(group)


def check_parcel(
    parcel: UUID, on_shelves: Sequence[ShelfRow], now: Instant, patience: Micros | None
) -> Iterator[Finding]:
    """Yield the findings about one parcel."""
    slices = [row for row in on_shelves if row.shelf not in ("parcels", "attempts")]
    sizes = [row.hi for row in on_shelves if row.shelf == "parcels"]
    if sizes:
        yield from _check_cover(parcel, sizes[0], slices)
    else:
        yield from (row.finding("no-parcel", "its parcel is missing") for row in slices)
    for row in slices:
        yield from _check_owner(row, now, patience)
    yield from _check_attempts([row for row in on_shelves if row.shelf == "attempts"], slices)


def _check_cover(parcel: UUID, n: int, slices: Sequence[ShelfRow]) -> Iterator[Finding]:
    """Yield findings if some item of 0..n-1 is in no slice or in several, or if a slice has other items."""
    for row in slices:
        if not 0 <= row.lo < row.hi <= n:
            yield row.finding("out-of-range", f"its parcel has {n} items")
    reached: ShelfRow | None = None
    for row in slices:
        if reached is not None and row.lo < reached.hi:
            yield row.finding("duplicate", f"{_items(row.lo, min(row.hi, reached.hi))} on {reached.shelf} too")
        if reached is None or row.hi > reached.hi:
            reached = row
    for lo, hi in gaps(0, n, [(row.lo, row.hi) for row in slices]):
        yield Finding(kind="missing", shelf="parcels", parcel=parcel, lo=lo, hi=hi, detail="on no shelf")


def _items(lo: int, hi: int) -> str:
    return f"item {lo} is" if hi - lo == 1 else f"items {lo} to {hi - 1} are"


def _check_owner(row: ShelfRow, now: Instant, patience: Micros | None) -> Iterator[Finding]:
    """Yield a finding if a slice that is not final has no owner, or if it is late because no service has handled it."""
    late = patience is not None and row.at is not None and row.at < now - patience
    if row.shelf == "waiting" and row.at is None and not row.note:
        yield row.finding("never-wakes", "it has no wake time and no gate")
    elif row.shelf == "waiting" and late:
        yield row.finding("overdue", "it is due and was not queued")
    elif row.shelf == "queued" and row.note:
        yield row.finding("no-lane", "its lane does not exist")
    elif row.shelf == "running" and row.note not in PRESENT and (late or row.note == "unknown"):
        yield row.finding("no-live-session", f"its session is {row.note}")
    elif row.shelf == "running" and late:
        yield row.finding("overdue", "its session is silent and was not ended")


def _check_attempts(tried: Sequence[ShelfRow], slices: Sequence[ShelfRow]) -> Iterator[Finding]:
    """Yield findings for attempts that are recorded twice, and for recorded attempts that were never granted."""
    for _, group in groupby(sorted(tried, key=lambda row: (row.attempt, row.lo)), key=lambda row: row.attempt):
        for a, b in pairwise(group):
            if b.lo < a.hi:
                yield b.finding("attempt-mismatch", f"attempt {b.attempt} of these items is recorded twice")
    for row in tried:
        if any(s.lo < row.hi and s.hi > row.lo and s.attempt < row.attempt for s in slices):
            yield row.finding("attempt-mismatch", f"attempt {row.attempt} is recorded, but was not granted yet")


class RepairResult(Struct):
    """The number of items that a repair made due again, or ended because they may run at most once."""

    requeued: int = 0
    ended: int = 0
    joins: int = 0  # number of jobs whose joins were checked again, and of executions that waited for an unknown join


def repair(findings: Iterable[Finding], now: Instant, rng: Random, new_id: NewId) -> Script[RepairResult]:
    """Give items without an owner a new one: they continue as if their worker had been lost, or as if they were due.

    Every finding is checked again under a lock. Items on two shelves or outside their parcel are left to the operator.
    """
    found = list(findings)
    yield Lock(("repair",))  # guard: repair-locks
    done = RepairResult()
    yield from housekeeping.adopt_orphans(now)
    for session in sorted({f.session for f in found if f.kind == "no-live-session" and f.session is not None}):
        yield from _take_back(session, now, rng, new_id, done)
    timeless = [f for f in found if f.kind == "never-wakes" and f.job is None]
    if timeless:
        yield ForEach(WAKE, shelves.SPAN, [(f.parcel, f.lo) for f in timeless], (now,))
        done.requeued += sum(f.hi - f.lo for f in timeless)
    for parcel in sorted({f.parcel for f in found if f.kind == "missing"}):
        yield from _restore(parcel, new_id, now, done)
    return done


def _take_back(session: UUID, now: Instant, rng: Random, new_id: NewId, done: RepairResult) -> Script[None]:
    effects = yield from rescue.rescue(session, 1000, now, rng, new_id)
    if effects is not None:
        done.requeued += sum(m.hi - m.lo for m in effects.moved)
        done.ended += sum(e.hi - e.lo for e in effects.ended)


def _restore(parcel: UUID, new_id: NewId, now: Instant, done: RepairResult) -> Script[None]:
    """Put the items of a parcel that are on no shelf on `waiting`, due now; end those that may run at most once."""
    rows = yield Fetch(ON_PAGE, (UUID(int=parcel.int - 1), parcel))
    on_shelves = [row for _, group in _by_parcel(rows) for row in group]
    slices = [row for row in on_shelves if row.shelf not in ("parcels", "attempts")]
    holes = [
        hole for row in on_shelves if row.shelf == "parcels" for hole in gaps(0, row.hi, [(s.lo, s.hi) for s in slices])
    ]
    parcels = yield from read_parcels([parcel])
    if not holes or not parcels:
        return
    e, width = parcels[0].envelope, parcels[0].width
    attempt = max(row.attempt for row in on_shelves) + BEYOND
    lost = [
        Slice(
            parcel=parcel,
            lo=lo,
            hi=hi,
            job=e.job,
            queue=e.queue,
            namespace=e.namespace,
            attempt=attempt,
            width=width,
            flags=flags_of(e.keys),
        )
        for lo, hi in holes
    ]
    if e.delivery == AT_MOST_ONCE:
        done.ended += sum(s.hi - s.lo for s in lost)
        yield from leave([], [_ended(lost_slice, now) for lost_slice in lost], new_id, now, Consequences())
    else:
        yield shelves.put_waiting([_due(lost_slice, now) for lost_slice in lost])
        done.requeued += sum(s.hi - s.lo for s in lost)


def _ended(lost_slice: Slice, now: Instant) -> FinishedSlice:
    message = "The store lost track of this execution. It may have run already, so it is not run again."
    error = Failure(type="Lost", message=message)
    return FinishedSlice(slice=lost_slice, state="failed", reason="delivery", completed_at=now, error=error)


def _due(s: Slice, now: Instant) -> WaitingSlice:
    return WaitingSlice(
        parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt,
        width=s.width, flags=s.flags, wake_at=now, reason="delay",
    )  # fmt: skip
