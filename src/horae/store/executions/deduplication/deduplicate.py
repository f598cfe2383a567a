"""Deduplication: submissions of a job with the same key share an execution, a window or a result.

Each key has a row in `meetings`, which is its lock. Before anything is created, the rows of all keys are inserted, or
locked if they exist, in sorted order. A row does not store whether the execution of the key has ended: this is read
from the shelves by a later statement. So scripts that end executions need not update the keys, and no key can block
submissions after its execution has ended.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.deduplication import (
    Cache,
    DeduplicationKey,
    KeyHolder,
    Unique,
    decide_unique,
    has_cached_result,
)
from horae.model.executions.parcel import Envelope, Parcel
from horae.model.executions.submission import NewExecution, NewItems, Receipt, UniqueKey
from horae.store.base import shelves
from horae.store.executions.deduplication import windows
from horae.store.executions.deduplication.windows import OpenWindow
from horae.store.executions.leaving import cancel
from horae.store.script import Again, ForEach, Insert, Row, Script, Statement, Together
from horae.store.triggers.dependencies.dependents import lock_around
from horae.store.triggers.dependencies.starts import Consequences, NewId

REPLACED = "a newer submission took its place"
RowKey = tuple[UUID, str, str]  # job, kind, key
KEY: shelves.Columns = (("job", "uuid"), ("kind", "text"), ("key", "text"))
ROW: shelves.Columns = (
    *KEY, ("execution", "uuid"), ("opened_at", "bigint"), ("until", "bigint"), ("span", "bigint"), ("count", "int"),
)  # fmt: skip
NO_EXECUTION = UUID(int=0)
_OWN = "ON m.job = given.job AND m.kind = given.kind AND m.key = given.key"
LOCK = Statement(
    "lock_meetings",
    "SELECT m.job, m.kind, m.key, m.execution, m.opened_at, m.until, m.count FROM given"
    f" JOIN meetings m {_OWN} ORDER BY m.job, m.kind, m.key FOR UPDATE OF m",
)
NAME = Statement(
    "name_meetings",
    "UPDATE meetings SET execution = given.execution, opened_at = given.opened_at, until = given.until,"
    " span = given.span, count = given.count FROM given"
    " WHERE meetings.job = given.job AND meetings.kind = given.kind AND meetings.key = given.key",
)
DROP = Statement("drop_meetings", "DELETE FROM meetings WHERE (job, kind, key) IN (SELECT job, kind, key FROM given)")
_STATE_COLUMNS = {
    "waiting": "'waiting', s.reason, s.attempt, CAST(NULL AS bigint)",
    "queued": "'queued', '', s.attempt, CAST(NULL AS bigint)",
    "running": "'running', '', s.attempt, CAST(NULL AS bigint)",
    "history": "s.state, '', s.attempt, s.completed_at",
}
EXECUTION_STATES = Statement(
    "met_executions",
    " UNION ALL ".join(
        f"SELECT s.parcel AS parcel, given.item AS item, {says} FROM given JOIN {shelf} s ON s.parcel = given.parcel"
        " AND s.lo <= given.item AND s.hi > given.item"
        for shelf, says in _STATE_COLUMNS.items()
    ),
)


class KeyAssignment(Struct, frozen=True):
    """The new value of a key."""

    by: int | UUID  # the execution of the key, or the index of the submission that creates it
    opened_at: Instant
    until: Instant | None = None  # the end of a key that is unique for a given time
    span: Micros | None = None  # how long a cached result may be used
    count: int = 1  # submissions in a window


class DeduplicationResult(Struct):
    """Decisions about submissions with keys, by the index of the submission; all others are placed as usual."""

    answers: dict[int, Receipt] = {}
    same: dict[int, int] = {}  # the submission of this transaction whose execution answers this one, too
    windows: dict[UUID, OpenWindow] = {}  # new and changed windows by parcel
    replaced: dict[int, UUID] = {}  # executions to cancel, by the submission that replaces them
    assignments: dict[RowKey, KeyAssignment] = {}
    new_rows: set[RowKey] = set()  # rows that this transaction inserted

    @property
    def has_changes(self) -> bool:
        """Tell whether `settle` has something to write."""
        return bool(self.windows or self.replaced)

    @property
    def created(self) -> Iterator[tuple[Envelope, int]]:
        """Yield the envelope of the execution of each new window, with the number of executions, which is 1."""
        return ((w.source.envelope, 1) for w in self.windows.values() if w.is_new and w.source is not None)

    @property
    def answered(self) -> Mapping[int, Receipt | int]:
        """Return the submissions that create no execution.

        Each has its answer, or the index of the submission whose answer it shares.
        """
        return {**self.same, **self.answers}

    def final(self, index: int) -> int:
        """Follow `same` from a submission to the one that answers it, and return the index of that one."""
        while index in self.same:
            index = self.same[index]
        return index

    def refuse(self, index: int) -> None:
        """Withdraw a submission, so that it replaces no execution and its keys keep their values."""
        self.replaced = {i: execution for i, execution in self.replaced.items() if self.final(i) != index}
        self.answers.setdefault(index, Receipt(NO_EXECUTION))

    def is_refused(self, index: int) -> bool:
        """Tell whether a submission was withdrawn."""
        return index in self.answers and self.answers[index].execution_id == NO_EXECUTION

    def changes(self, asked: Sequence[NewItems], made: Callable[[int], UUID]) -> Iterator[ForEach]:
        """Yield the updates of keys, and the deletion of new rows that were not used.

        `made` returns the execution that a submission has created, by the index of the submission.
        """
        rows: list[tuple[object, ...]] = []
        for key in sorted(self.assignments):
            named = self.assignments[key]
            execution = named.by if isinstance(named.by, UUID) else self._placed(key, named.by, asked, made)
            if execution is not None:
                rows.append((*key, execution, named.opened_at, named.until, named.span, named.count))
        yield ForEach(NAME, ROW, rows)
        used = {row[:3] for row in rows}
        yield ForEach(DROP, KEY, sorted(key for key in self.new_rows if key not in used))

    def _placed(self, key: RowKey, index: int, asked: Sequence[NewItems], made: Callable[[int], UUID]) -> UUID | None:
        """Return the new execution of a key.

        Return None if its submission was withdrawn, or if a submission without this key has replaced it.
        """
        last = self.final(index)
        if last in self.answers or all(row_key(asked[last], one) != key for one in asked[last].deduplication):
            return None
        return made(last)


def deduplicate(
    asked: Sequence[NewItems], known: Mapping[UniqueKey, UUID], new_id: NewId, now: Instant
) -> Script[DeduplicationResult]:
    """Decide, in their order, about submissions whose jobs are unique, debounced, batched or cached."""
    meeting = [(i, e) for i, e in _winners(asked, known) if e.deduplication]
    decider = yield from lock_keys([e for _, e in meeting], new_id, now)
    for i, e in meeting:
        decider.decide(i, e)
    return decider.met


def lock_keys(meeting: Sequence[NewExecution], new_id: NewId, now: Instant) -> Script["Decider"]:
    """Lock the keys of submissions, and return the object that decides about these submissions."""
    met = DeduplicationResult()
    keys = sorted({row_key(e, one) for e in meeting for one in e.deduplication})
    if not keys:
        return Decider(met, {}, {}, {}, new_id, now)
    blank = [(*key, NO_EXECUTION, now, None, None, 0) for key in keys]
    unless = "ON CONFLICT DO NOTHING"
    rows = yield Insert("meetings", ROW, blank, conflict=unless, returning="job, kind, key")  # guard: meeting-once
    met.new_rows = {(row[0], row[1], row[2]) for row in rows}
    losers = [key for key in keys if key not in met.new_rows]
    held = (yield ForEach(LOCK, KEY, losers)) if losers else []
    if len(held) < len(losers):  # a row was deleted meanwhile: try again to insert it
        raise Again
    taken = {(row[0], row[1], row[2]): row for row in held}
    open_ = yield from windows.lock_open(
        [(row[3], row[1], row[4], row[6]) for row in held if row[1] in windows.REASONS]
    )
    holders = yield from holders_of([row for row in held if row[1] not in windows.REASONS])
    return Decider(met, taken, open_, holders, new_id, now)


def _winners(asked: Sequence[NewItems], known: Mapping[UniqueKey, UUID]) -> Iterator[tuple[int, NewExecution]]:
    """Yield the submissions, with their indexes, that are not answered because of a unique key of their request."""
    seen: set[UniqueKey] = set()
    for i, e in enumerate(asked):
        if not isinstance(e, NewExecution) or (e.unique is not None and (e.unique in known or e.unique in seen)):
            continue
        if e.unique is not None:
            seen.add(e.unique)
        yield i, e


def row_key(e: NewItems, one: DeduplicationKey) -> RowKey:
    return e.envelope.job, one.kind, one.key


def holders_of(rows: Sequence[Row]) -> Script[dict[UUID, KeyHolder]]:
    """Return the states of the executions of keys, given by their rows; executions on no shelf have expired."""
    if not rows:
        return {}
    until = {row[3]: row[5] for row in rows}
    given = sorted((parcel_of(row[3]), index_of(row[3])) for row in rows)
    rows_found = yield ForEach(EXECUTION_STATES, shelves.ITEM, given)
    by_place = {(parcel, item): said for parcel, item, *said in rows_found}
    found = {}
    for execution, end in until.items():
        state, reason, attempt, completed_at = by_place.get(
            (parcel_of(execution), index_of(execution)), ("expired", "", 0, None)
        )
        found[execution] = KeyHolder(state=state, reason=reason, attempt=attempt, until=end, completed_at=completed_at)
    return found


class Decider:
    """Decides about the submissions of one transaction, one after the other."""

    def __init__(
        self,
        met: DeduplicationResult,
        taken: Mapping[RowKey, Row],
        open_: dict[UUID, OpenWindow],
        holders: Mapping[UUID, KeyHolder],
        new_id: NewId,
        now: Instant,
    ) -> None:
        self.met, self._taken, self._holders, self._new_id, self._now = met, taken, holders, new_id, now
        self._open = {key: open_[row[3]] for key, row in taken.items() if row[3] in open_}

    def decide(self, i: int, e: NewExecution) -> None:
        """Decide about one submission."""
        for one in e.deduplication:
            key = row_key(e, one)
            if isinstance(one.rule, Cache):
                decided = self._remembered(i, key, one.rule)
            elif isinstance(one.rule, Unique):
                decided = self._unique(i, key, one.rule)
            else:
                decided = self._window(i, e, key, one)
            if decided:
                return

    def _known(self, key: RowKey) -> tuple[UUID, KeyHolder] | None:
        """Return the execution that a key had before this transaction, with its state."""
        row = self._taken.get(key)
        return None if row is None or row[3] == NO_EXECUTION else (row[3], self._holders[row[3]])

    def _remembered(self, i: int, key: RowKey, rule: Cache) -> bool:
        """Answer with a cached result if there is one; return whether there is.

        If there is none, the first submission provides the result for later ones. Until it has ended, all submissions
        are executed.
        """
        known = self._known(key)
        if known is not None and has_cached_result(rule, known[1], self._now):
            self.met.answers[i] = Receipt(known[0], state=known[1].state, cached=True)
            return True
        if key not in self.met.assignments and not (known is not None and known[1].is_live):
            self.met.assignments[key] = KeyAssignment(i, self._now, span=rule.ttl)
        return False

    def _unique(self, i: int, key: RowKey, rule: Unique) -> bool:
        mine = self.met.assignments.get(key)
        if mine is not None and isinstance(mine.by, int) and not self.met.is_refused(mine.by):
            if rule.keep == "first":
                self.met.same[i] = mine.by
                return True
            self.met.same[mine.by] = i
        elif (known := self._known(key)) is not None:
            verdict = decide_unique(rule, known[1], self._now)
            if verdict == "same":
                self.met.answers[i] = Receipt(known[0], deduplicated=True)
                return True
            if verdict == "replace":
                self.met.replaced[i] = known[0]
        self.met.assignments[key] = KeyAssignment(
            i, self._now, until=None if rule.span is None else self._now + rule.span
        )
        return False

    def _window(self, i: int, e: NewExecution, key: RowKey, one: DeduplicationKey) -> bool:
        assert not isinstance(one.rule, Unique | Cache)
        window = self._open.get(key)
        if window is not None and window.has_room(e, one.rule):
            place = window.join(e, one.rule, self._now)
        else:
            window, place = windows.new_window(e, one.rule, self._new_id, self._now), 0
            self._open[key] = window
        self.met.windows[window.parcel] = window
        self.met.assignments[key] = KeyAssignment(window.parcel, window.opened_at, count=window.count)
        batched = one.kind == "batch"
        self.met.answers[i] = Receipt(
            window.parcel, state="waiting", deduplicated=place > 0 and not batched, batched=batched,
            index=place if batched else None,
        )  # fmt: skip
        return True


def settle(
    met: DeduplicationResult, asked: Sequence[NewItems], new_id: NewId, now: Instant, consequences: Consequences
) -> Script[list[Parcel]]:
    """Write the windows, cancel replaced executions, and return the parcels of new windows.

    If a replaced execution has just begun to run, the driver restarts the whole transaction.
    """
    opened = windows.write(list(met.windows.values()), now)
    if met.windows:
        yield Together(opened.changes)
        consequences.wake_by(opened.wake_at)
    if met.replaced:  # these jobs are locked in one sorted order with those whose dependencies submissions wait for
        yield from lock_around({e.envelope.job for e in asked if e.deduplication or e.patience is not None})
    for execution in sorted(met.replaced.values()):
        verdict, _ = yield from cancel.cancel(parcel_of(execution), index_of(execution), REPLACED, now, new_id)
        if verdict not in ("cancelled", "ended"):  # guard: replaced-was-cancelled
            raise Again
    return opened.parcels
