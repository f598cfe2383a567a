"""Reads of dead letters for counting. They scan the index of failed executions, page by page and without joins."""

from functools import cache
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.keys import CHILD
from horae.store.base.shelves import SPAN
from horae.store.executions.reads.execution_lists import (
    FIRST,
    HEAD,
    LONG_HEAD,
    ExecutionFilter,
    Place,
    contains_text,
    ended_condition,
    error_type,
)
from horae.store.script import Fetch, ForEach, Script, Statement

PAGE = 2_000
LONG_PAGE = 500  # rows per page if long parts of error messages are read
QUEUE = Statement("queue_of_letters", "SELECT id FROM queues WHERE namespace = $1 AND name = $2")
MARKED = Statement(
    "marked_letters",
    "SELECT m.parcel, m.item, m.kind FROM given JOIN marks m ON m.parcel = given.parcel"
    " AND m.item >= given.lo AND m.item < given.hi",
)


class FailedSlice(Struct, frozen=True):
    """A slice of failed executions; `count` is the number of its items whose mark matches.

    `error_head` is the beginning of the error as JSON.
    """

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    queue: int
    reason: str
    completed_at: Instant
    error_head: str | None
    flags: int
    count: int

    @property
    def error_type(self) -> str:
        return error_type(self.error_head)


@cache
def _window(marked: str | None, by_job: bool, since: bool, head: int, size: int) -> Statement:
    """Return the query for the newest slices of failed executions before a place.

    For each slice it also counts the items with the mark `marked`; the mark "" counts unmarked items, None counts all.
    """
    beside = "FROM marks m WHERE m.parcel = history.parcel AND m.item >= history.lo AND m.item < history.hi"
    many = {
        None: "hi - lo",
        "": f"hi - lo - (SELECT count(*) {beside})",
    }.get(marked, f"(SELECT count(*) {beside} AND m.kind = '{marked}')")
    own = "CASE WHEN namespace = $3 THEN TRUE ELSE FALSE END" if by_job else "namespace = $3"
    where = ["(parcel, lo) < ($1, $2)", own, ended_condition("failed")]
    where += ["parcel >= $4"] if since else []
    where += [f"job = ${4 + since}"] if by_job else []
    return Statement(
        "letters_to_count",
        f"SELECT parcel, lo, hi, job, queue, reason, completed_at, substr(error, 1, {head}), flags, {many} FROM history"
        f" WHERE {' AND '.join(where)} ORDER BY parcel DESC, lo DESC LIMIT {size}",
    )


def matching_slices(
    namespace: int, wanted: ExecutionFilter, before: Place
) -> Script[tuple[list[FailedSlice], Place | None, int]]:
    """Read a page of slices before a place.

    Return the matching slices, the place to continue from (None at the end), and the number of rows read.
    """
    long = wanted.text is not None
    size = LONG_PAGE if long else PAGE
    statement = _window(wanted.mark, wanted.job is not None, wanted.low != FIRST, LONG_HEAD if long else HEAD, size)
    bounds = [bound for bound in (wanted.low, wanted.job) if bound not in (None, FIRST)]
    rows = yield Fetch(statement, (*before, namespace, *bounds))
    queue = None
    if wanted.queue is not None:
        known = yield Fetch(QUEUE, (namespace, wanted.queue))
        queue = known[0][0] if known else -1
    found = [letters for row in rows if (letters := FailedSlice(*row)).count and _passes(letters, wanted, queue)]
    following = (rows[-1][0], rows[-1][1]) if len(rows) == size else None
    return found, following, len(rows)


def _passes(letters: FailedSlice, wanted: ExecutionFilter, queue: int | None) -> bool:
    return (
        not (wanted.without_steps and letters.flags & CHILD)
        and (queue is None or letters.queue == queue)
        and (wanted.reason is None or letters.reason == wanted.reason)
        and (wanted.error_type is None or letters.error_type == wanted.error_type)
        and contains_text(letters.error_head, wanted.text)
    )


def newest_items(some: list[FailedSlice], mark: str | None) -> Script[list[Place | None]]:
    """Return the newest item of each slice with this mark, or None if its items were marked otherwise meanwhile."""
    rows = yield ForEach(MARKED, (*SPAN, ("hi", "int")), [(one.parcel, one.lo, one.hi) for one in some])
    known: dict[Place, str] = {(row[0], row[1]): row[2] for row in rows}
    return [_newest(one, known, mark) for one in some]


def _newest(one: FailedSlice, known: dict[Place, str], mark: str | None) -> Place | None:
    for item in range(one.hi - 1, one.lo - 1, -1):
        if mark is None or known.get((one.parcel, item), "") == mark:
            return one.parcel, item
    return None
