"""Lists of executions, newest first: statements read pages of slices, and Python expands the slices to items.

Indexes bound the cost of a page. Each shelf is read backwards along (parcel, lo), the history of one job along (job,
parcel). For failed, cancelled and skipped executions there are indexes of their own along (namespace, parcel) and (job,
parcel). A statement reads at most one window, which is a bounded number of slices, from each shelf. Filters without an
index are applied to a bounded number of windows. So such a page may be short or empty, and its cursor leads to more.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice
from uuid import UUID

import msgspec
from msgspec import Raw, Struct, structs

from horae.env import Instant
from horae.model.admission.keys import CHILD
from horae.model.base.ids import execution_id
from horae.model.executions.execution import Execution, State
from horae.model.executions.parcel import Extras
from horae.model.executions.settle import timing_of
from horae.model.executions.show_execution import MOST_SHOWN, read_failure, status_of
from horae.store.base.shelves import SPAN
from horae.store.definitions.job_reads import ITEM, PROGRESS
from horae.store.executions import first_starts
from horae.store.executions.reads import item_parts
from horae.store.executions.reads.execution_reads import (
    SHELF_EXPRESSIONS,
    SLICE_COLUMNS,
    FoundExecution,
    needs_of,
    shelf_columns,
)
from horae.store.script import Fetch, ForEach, Script, Statement

# Slices of a window. They are literals in the statement, so that PostgreSQL plans for few rows.
WINDOWS = (64, 256, 1024)
MOST_WINDOWS = 8  # windows that are read for one page
# Characters of a stored error that are read: enough for its type, or for most messages, too.
HEAD, LONG_HEAD = 300, 6_000
MOST_TAGGED = 4 * item_parts.MOST_BYTES  # bytes of extras that a page searches for tags
RARE = ("failed", "cancelled", "skipped")  # final states with an index of their own
_BEGUN = "reason IN ('children', 'signal', 'sleep')"  # suspended executions, which are shown as running
FIRST = UUID(int=0)
LAST = UUID(int=(1 << 128) - 1)

Place = tuple[UUID, int]  # parcel and item: the next page of a list has the executions before it
END: Place = (LAST, 0)


class ExecutionFilter(Struct, frozen=True, kw_only=True):
    """The filters of a list of executions; a field that is left out selects all."""

    states: frozenset[str] | None = None
    job: UUID | None = None
    queue: str | None = None
    parent: UUID | None = None
    tag: tuple[str, str | None] | None = None
    worker: str | None = None
    error_type: str | None = None
    reason: str | None = None
    text: str | None = None  # a part of the error's message, regardless of upper and lower case
    low: UUID = FIRST  # the first parcel of the list: older ones are left out
    mark: str | None = None  # the kind of the mark of a dead letter; "" selects executions without a mark
    without_steps: bool = False  # leaves out steps of workflows: a failed step counts as a failure of its workflow

    @property
    def shelves(self) -> tuple[str, ...]:
        """Return the shelves that may have executions in these states."""
        if self.states is None:
            return tuple(SHELF_EXPRESSIONS)
        live = [shelf for shelf in ("waiting", "queued", "running") if shelf in self.states]
        if "running" in self.states and "waiting" not in live:
            live.append("waiting")
        return (*live, "history") if self.states - {"waiting", "queued", "running"} else tuple(live)


class DeadLetterMark(Struct, frozen=True):
    """The mark of a dead letter: retried or discarded."""

    kind: str
    execution: UUID | None  # the new execution of a retry
    at: Instant


class ListedSlice(Struct, frozen=True):
    """A slice in a list; its fields are the columns of the query that `listing` returns, in their order."""

    parcel: UUID
    job: UUID
    queue: int
    lo: int
    hi: int
    attempt: int
    failures: int
    losses: int
    state: State
    reason: str
    wake_at: Instant | None
    queued_at: Instant | None
    started_at: Instant | None
    completed_at: Instant | None
    session: UUID | None
    exit_code: int | None
    worker: str | None
    error_head: str | None
    flags: int
    version: int
    priority: int
    due_at: Instant
    parent: UUID | None
    submitted_at: Instant
    extras: int | None  # bytes of its parcel's extras
    job_name: str
    job_state: str
    queue_name: str | None
    needs: str | None
    last_seen: Instant | None

    @property
    def status(self) -> State:
        return status_of(self.state, self.reason)

    @property
    def error_type(self) -> str:
        return error_type(self.error_head)


@lru_cache(4096)
def error_type(head: str | None) -> str:
    """Return the type of a stored error from the beginning of its JSON, where the type is the first field.

    A type that does not fit into the beginning is cut.
    """
    found = _TYPE.match(head or "")
    if found is None:
        return ""
    return found[1] if "\\" not in found[1] else msgspec.json.decode(f'"{found[1]}"', type=str)


_TYPE = re.compile(r'\{"type":"((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*)')
Chosen = tuple[ListedSlice, int]  # a slice and one of its items
_COLUMNS = ", ".join(f"s.{name}" for name, _ in SLICE_COLUMNS if name != "worker")


@cache
def _window(
    shelves: tuple[str, ...], by_job: bool, rare: str, since: bool, size: int, head: int = HEAD, tenant: bool = False
) -> Statement:
    """Return the statement for a window: the newest slices of each shelf before a place, merged.

    If only one state is selected and it is final but not success, or is running, `rare` is this state; otherwise it is
    empty. `since` adds a lower bound of parcels. A `tenant` is any namespace but the first; history has an index for
    them.
    """
    newest = " UNION ALL ".join(_newest(shelf, by_job, rare, since, size, head, tenant) for shelf in shelves)
    slices = f"(SELECT * FROM ({newest}) AS a ORDER BY parcel DESC, lo DESC LIMIT {size})"
    return Statement(f"list_{'_'.join(shelves)}", listing(slices))


def listing(slices: str) -> str:
    """Return the query for the columns of `ListedSlice`, for these slices, newest first."""
    return (
        f"SELECT s.parcel, s.job, s.queue, {_COLUMNS}, coalesce(c.worker, s.worker) AS worker, s.error_head, s.flags,"
        " p.version, p.priority, p.due_at, p.parent, p.submitted_at, length(p.extras) AS extras, j.name,"
        f" j.state AS job_state, u.name AS queue_name, l.needs, c.last_seen FROM {slices} AS s"
        f" {_probe('parcels', 'p', 's.parcel')} {_probe('jobs', 'j', 's.job')} LEFT JOIN queues u ON u.id = s.queue"
        f" LEFT {_probe('lanes', 'l', 'p.lane')} LEFT JOIN sessions c ON c.id = s.session"
        " ORDER BY s.parcel DESC, s.lo DESC"
    )


def _probe(table: str, alias: str, key: str) -> str:
    """Return SQL that joins a row by its id, one lookup for each id.

    With a plain join, PostgreSQL would read the whole table for a thousand ids.
    """
    return f"JOIN LATERAL (SELECT * FROM {table} x WHERE x.id = {key} OFFSET 0) {alias} ON TRUE"


def ended_condition(state: str) -> str:
    """Return the condition that selects a final state by its index; SQLite uses the index only with both parts."""
    return f"state = '{state}' AND state <> 'success'"


def slice_columns(shelf: str, head: int = HEAD) -> str:
    """Return the columns of a listed slice, as expressions on a shelf."""
    error = f"substr(error, 1, {head})" if shelf == "history" else "NULL::text"
    return f"parcel, job, queue, {shelf_columns(shelf)}, {error} AS error_head, flags"


def _newest(shelf: str, by_job: bool, rare: str, since: bool, size: int, head: int, tenant: bool) -> str:
    is_rare = bool(rare) and shelf == "history"
    own = tenant and shelf == "history" and not by_job and not is_rare
    where = ["(parcel, lo) < ($1, $2)"]
    # The condition on the namespace is a CASE unless an index begins with the namespace. From a plain equality, or from
    # two bounds of one column, PostgreSQL would expect few rows of a table that it has not analyzed yet. Then it would
    # read and sort all rows, instead of reading a few in order.
    indexed = own or (is_rare and not by_job)
    where += ["namespace = $3" if indexed else "CASE WHEN namespace = $3 THEN TRUE ELSE FALSE END"]
    where += ["namespace <> 1"] if own else []
    where += [ended_condition(rare)] if is_rare else []
    where += [_BEGUN] if rare == "running" and shelf == "waiting" else []
    where += ["parcel >= $4"] if since else []
    where += [f"job = ${4 + since}"] if by_job else []
    return (
        f"SELECT * FROM (SELECT {slice_columns(shelf, head)} FROM {shelf}"
        f" WHERE {' AND '.join(where)} ORDER BY parcel DESC, lo DESC LIMIT {size}) AS {shelf}_slices"
    )


def page(
    namespace: int, wanted: ExecutionFilter, before: Place, limit: int
) -> Script[tuple[list[Chosen], Place | None]]:
    """Return up to `limit` executions before a place, newest first, and the place before which the next page begins.

    The place is None at the end of the list.
    """
    only = next(iter(wanted.states)) if wanted.states is not None and len(wanted.states) == 1 else ""
    rare = only if only in (*RARE, "running") else ""
    size = next(size for size in WINDOWS if size >= limit)
    chosen: list[Chosen] = []
    for _ in range(MOST_WINDOWS):
        head = HEAD if wanted.text is None else LONG_HEAD
        by_job, since, tenant = wanted.job is not None, wanted.low != FIRST, namespace != 1
        statement = _window(wanted.shelves, by_job, rare, since, size, head, tenant)
        bounds = [bound for bound in (wanted.low, wanted.job) if bound not in (None, FIRST)]
        rows = yield Fetch(statement, (*before, namespace, *bounds))
        slices = [ListedSlice(*row) for row in rows]
        some, stopped = yield from matching(slices, wanted, before, limit - len(chosen))
        chosen += some
        if len(chosen) == limit:
            return chosen, (chosen[-1][0].parcel, chosen[-1][1])
        if stopped is not None:
            return chosen, stopped
        if len(rows) < size:
            return chosen, None
        before, size = (slices[-1].parcel, slices[-1].lo), WINDOWS[-1]
    return chosen, before


def matching(
    slices: Sequence[ListedSlice], wanted: ExecutionFilter, before: Place, limit: int
) -> Script[tuple[list[Chosen], Place | None]]:
    """Return up to `limit` items that pass the filters, newest first, and None.

    If the search for a tag would read more than `MOST_TAGGED` bytes, it stops early. Then the place before which the
    search has to continue is returned instead of None.
    """
    passing = [listed for listed in slices if _passes(listed, wanted)]
    keep = yield from _marked(passing, wanted.mark)
    extras = (yield from extras_of(passing, MOST_TAGGED)) if wanted.tag is not None else None
    found: list[Chosen] = []
    for number, listed in enumerate(passing):
        if extras is not None and listed.parcel not in extras:
            return found, (passing[number - 1].parcel, passing[number - 1].lo)
        hi = min(listed.hi, before[1]) if listed.parcel == before[0] else listed.hi
        tagged = _tagged(listed, wanted.tag, extras)
        items = ((listed, item) for item in range(hi - 1, listed.lo - 1, -1) if tagged(item) and keep(listed, item))
        found += islice(items, limit - len(found))
        if len(found) == limit:
            break
    return found, None


def extras_of(slices: Iterable[ListedSlice], most: int) -> Script[dict[UUID, Extras]]:
    """Return the extras (such as tags) of the first parcels of these slices: up to `most` bytes, or of one parcel."""
    total, taken = 0, dict[UUID, int]()
    for listed in slices:
        if listed.parcel not in taken:
            total += listed.extras or 0
            if taken and total > most:
                break
            taken[listed.parcel] = listed.extras or 0
    rows = yield ForEach(EXTRAS, (("id", "uuid"),), [(parcel,) for parcel, size in taken.items() if size])
    known = {parcel: bytes(encoded) for parcel, encoded in rows if encoded is not None}
    return {parcel: Extras(known.get(parcel)) for parcel in taken}


def _passes(listed: ListedSlice, wanted: ExecutionFilter) -> bool:
    checks: tuple[tuple[object, object], ...] = (
        (wanted.job, listed.job),
        (wanted.queue, listed.queue_name),
        (wanted.parent, listed.parent),
        (wanted.worker, listed.worker),
        (wanted.error_type, listed.error_type),
        (wanted.reason, listed.reason),
    )
    if wanted.without_steps and listed.flags & CHILD:
        return False
    fits = all(asked is None or asked == has for asked, has in checks) and contains_text(listed.error_head, wanted.text)
    return fits and (wanted.states is None or listed.status in wanted.states)


def contains_text(head: str | None, text: str | None) -> bool:
    """Tell whether the beginning of a stored error contains a text, regardless of case; both are compared as JSON."""
    if text is None:
        return True
    spelled = msgspec.json.encode(text).decode()[1:-1]
    return spelled.lower() in (head or "").lower()


def _tagged(
    listed: ListedSlice, tag: tuple[str, str | None] | None, extras: dict[UUID, Extras] | None
) -> Callable[[int], bool]:
    if tag is None or extras is None:
        return lambda item: True
    name, value = tag
    own = extras[listed.parcel]

    def has(item: int) -> bool:
        tags = own[item].tags
        return name in tags and (value is None or tags[name] == value)

    return has


EXTRAS = Statement("listed_extras", "SELECT p.id, p.extras FROM given JOIN parcels p ON p.id = given.id")
MARKS = Statement(
    "marks_of",
    "SELECT m.parcel, m.item, m.kind, m.execution, m.at FROM given JOIN marks m ON m.parcel = given.parcel"
    " AND m.item >= given.lo AND m.item < given.hi",
)


def marks(spans: Iterable[tuple[UUID, int, int]]) -> Script[dict[tuple[UUID, int], DeadLetterMark]]:
    """Return the marks of dead letters in these ranges (parcel, lo, hi), by parcel and item."""
    rows = yield ForEach(MARKS, (*SPAN, ("hi", "int")), list(spans))
    return {(parcel, item): DeadLetterMark(kind, execution, at) for parcel, item, kind, execution, at in rows}


def _marked(slices: Sequence[ListedSlice], kind: str | None) -> Script[Callable[[ListedSlice, int], bool]]:
    if kind is None or not slices:
        return lambda listed, item: True
    known = yield from marks((s.parcel, s.lo, s.hi) for s in slices)

    def keep(listed: ListedSlice, item: int) -> bool:
        mark = known.get((listed.parcel, item))
        return (mark.kind if mark else "") == kind

    return keep


def read(
    page: Script[tuple[list[Chosen], Place | None]], namespace: int, *, whole: bool = False
) -> Script[tuple[list[FoundExecution], Place | None]]:
    """Return the executions of a page with their params, results and errors, and the place of the next page.

    A page with more than `item_parts.MOST_BYTES` is shortened. Large params and results are left empty, unless `whole`
    is true.
    """
    chosen, following = yield from page
    extras = yield from extras_of((listed for listed, _ in chosen), item_parts.MOST_BYTES)
    items = [item_parts.Item(s.parcel, s.lo, item, s.completed_at is not None) for s, item in chosen]
    sizes = yield from item_parts.measure(items, None if whole else MOST_SHOWN)
    with_extras = sum(1 for one in items if one.parcel in extras)
    count = min(item_parts.count_that_fits(items, sizes), with_extras)
    if count < len(items):
        chosen, items, following = chosen[:count], items[:count], (items[count - 1].parcel, items[count - 1].item)
    parts = yield from item_parts.read(items, sizes)
    noted = yield ForEach(PROGRESS, ITEM, [(s.parcel, item) for s, item in chosen if s.session is not None])
    progress = {(parcel, item, attempt): (percent, message) for parcel, item, attempt, percent, message in noted}
    found = [
        _execution(listed, item, namespace, sizes, parts, extras[listed.parcel], progress)
        for (listed, _), item in zip(chosen, items, strict=True)
    ]
    starts = yield from first_starts.read(one.execution for one in found)
    return [structs.replace(one, execution=first_starts.with_start(one.execution, starts)) for one in found], following


def _execution(
    s: ListedSlice, which: item_parts.Item, namespace: int, sizes: item_parts.Sizes, parts: item_parts.Parts,
    extras: Extras, notes: dict[tuple[UUID, int, int], tuple[float, str]],
) -> FoundExecution:  # fmt: skip
    item, ended, result = which.item, sizes.ended.get((s.parcel, s.lo)), parts.results[which]
    started, completed = timing_of(ended.timings if ended else None, item - s.lo, s.started_at, s.completed_at or 0)
    percent, message = notes.get((s.parcel, item, s.attempt), (None, ""))
    execution = Execution(
        id=execution_id(s.parcel, item), job=s.job, version=s.version, namespace=namespace, queue=s.queue,
        state=s.status, due_at=s.due_at, priority=s.priority, attempt=s.attempt, failures=s.failures, losses=s.losses,
        submitted_at=s.submitted_at, queued_at=s.queued_at, started_at=started,
        completed_at=completed if s.completed_at is not None else None, wake_at=s.wake_at, reason=s.reason,
        session=s.session, worker=s.worker, last_seen=s.last_seen, result=None if result is None else Raw(result),
        exit_code=s.exit_code, error=read_failure(parts.errors.get((s.parcel, s.lo))),
        parent=s.parent, percent=percent, message=message,
        params=Raw(parts.params[which]) if s.parcel in sizes.items else Raw(b"null"), extra=extras[item],
    )  # fmt: skip
    return FoundExecution(
        execution=execution,
        job_name=s.job_name,
        job_state=s.job_state,
        queue_name=s.queue_name,
        needs=needs_of(s.needs),
    )
