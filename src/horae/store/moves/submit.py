"""Submit: accepted executions on disk, many requests in one transaction.

Order: keys first, sorted, ON CONFLICT DO NOTHING; losers are answered with what the key stands for; winners then get
their indexes and form parcels. Everything that can be refused was refused before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.execution import Extra
from horae.model.ids import execution_id, index_of, parcel_id, parcel_of
from horae.model.packing import Packed
from horae.model.parcel import Envelope, Parcel, loads, make_parcel
from horae.model.slice import Queued, Waiting
from horae.store.moves import shelves
from horae.store.moves.standing import Piece, standing
from horae.store.script import Again, ForEach, Insert, Script, Statement, Together

PARCELS: shelves.Columns = (
    ("id", "uuid"), ("namespace", "int"), ("job", "uuid"), ("version", "int"), ("queue", "int"), ("lane", "int"),
    ("priority", "smallint"), ("deadline", "bigint"), ("due_at", "bigint"), ("keys", "text"), ("parent", "uuid"),
    ("delivery", "smallint"), ("n", "int"), ("ends", "bytea"), ("items", "bytea"), ("extras", "bytea"),
    ("submitted_at", "bigint"),
)  # fmt: skip
UNIQUE: shelves.Columns = (("namespace", "int"), ("scope", "text"), ("key", "text"))
IDEMPOTENT: shelves.Columns = (("namespace", "int"), ("route", "text"), ("key", "text"))
FREE_EXPIRED = Statement(
    "free_expired_keys",
    "DELETE FROM unique_keys WHERE (namespace, scope, key) IN (SELECT k.namespace, k.scope, k.key FROM given"
    " JOIN unique_keys k ON k.namespace = given.namespace AND k.scope = given.scope AND k.key = given.key"
    " WHERE k.until <= $4 FOR UPDATE OF k SKIP LOCKED)",
)
READ_KEYS = Statement(
    "read_keys",
    "SELECT k.namespace, k.scope, k.key, k.execution FROM given JOIN unique_keys k"
    " ON k.namespace = given.namespace AND k.scope = given.scope AND k.key = given.key WHERE k.until > $4",
)
NAME_KEYS = Statement(
    "name_keys",
    "UPDATE unique_keys SET execution = given.execution FROM given WHERE unique_keys.namespace = given.namespace"
    " AND unique_keys.scope = given.scope AND unique_keys.key = given.key",
)
FREE_IDEMPOTENT = Statement(
    "free_expired_idempotency",
    "DELETE FROM idempotency WHERE (namespace, route, key) IN (SELECT k.namespace, k.route, k.key FROM given"
    " JOIN idempotency k ON k.namespace = given.namespace AND k.route = given.route AND k.key = given.key"
    " WHERE k.until <= $4 FOR UPDATE OF k SKIP LOCKED)",
)
READ_IDEMPOTENT = Statement(
    "read_idempotency",
    "SELECT k.namespace, k.route, k.key, k.body_hash, k.answer FROM given JOIN idempotency k"
    " ON k.namespace = given.namespace AND k.route = given.route AND k.key = given.key WHERE k.until > $4",
)
ANSWER_IDEMPOTENT = Statement(
    "answer_idempotency",
    "UPDATE idempotency SET status = 201, answer = given.answer FROM given"
    " WHERE idempotency.namespace = given.namespace AND idempotency.route = given.route"
    " AND idempotency.key = given.key",
)
# Held until the commit: a deletion waits for it and then finds what was accepted, or comes first and is seen here.
CURRENT = Statement(
    "current_jobs",
    "SELECT j.id, j.version, j.state FROM given JOIN jobs j ON j.id = given.id FOR KEY SHARE OF j",
)

UniqueKey = tuple[int, str, str]  # namespace, scope, key


class NewExecution(Struct, frozen=True, kw_only=True):
    """One execution asked for, resolved: its envelope (without the batch's instant), its item and its keys."""

    envelope: Envelope  # due_at 0 stands for "now": the batch's instant
    rank_lead: int  # how far its rank lies before its arrival
    item: bytes
    extra: Extra = Extra()
    unique: UniqueKey | None = None
    unique_for: int = 0


class NewLot(Struct, frozen=True, kw_only=True):
    """Many executions asked for at once on the same terms, without keys."""

    envelope: Envelope
    rank_lead: int
    items: Sequence[bytes]
    extra: Extra = Extra()
    unique: None = None


Asked = NewExecution | NewLot


class Idempotency(Struct, frozen=True):
    """A request's own key: a repeat is answered with the stored answer, another body is refused."""

    namespace: int
    route: str
    key: str
    body_hash: bytes
    until: Instant


class Submission(Struct, frozen=True, kw_only=True):
    """One request: executions that are accepted together."""

    executions: Sequence[Asked]
    idempotency: Idempotency | None = None


class Receipt(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of an execution asked for, or of `count` of a lot that stand one after another in a parcel."""

    execution_id: UUID
    deduplicated: bool = False
    state: str = "queued"
    count: int = 1


class Repeated(Struct, frozen=True):
    """The request was answered before."""

    answer: list[Receipt]


class Reused(Struct, frozen=True):
    """The idempotency key belongs to another body."""


class Submitted(Struct, frozen=True):
    """Answers in the order of the submissions; the parcels written; and lanes and timers to hint."""

    answers: list[list[Receipt] | Repeated | Reused]
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None


class JobMoved(Exception):
    """A job was edited or deleted since the request was resolved: resolve again."""

    def __init__(self, jobs: set[UUID]) -> None:
        super().__init__(f"{len(jobs)} jobs changed")
        self.jobs = jobs


def submit(submissions: Sequence[Submission], new_id: Callable[[], UUID], now: Instant) -> Script[Submitted]:
    """Accept these requests; each is answered, none half."""
    answers: dict[int, list[Receipt] | Repeated | Reused] = {}
    if any(s.idempotency for s in submissions):
        answers = yield from _known_requests(submissions, now)
    fresh = [(i, s) for i, s in enumerate(submissions) if i not in answers]
    asked = [e for _, s in fresh for e in s.executions]
    yield from _check_jobs(asked)
    known = yield from _take_keys(asked, now)
    placed, parcels = place(asked, known, new_id, now)
    receipts = iter(placed)
    for i, submission in fresh:
        answers[i] = [receipt for _ in submission.executions for receipt in next(receipts)]
    lanes, wake_at = yield from put_parcels(
        parcels, now, [*_name_keys(asked, placed), *_remember_answers([(s, answers[i]) for i, s in fresh])]
    )
    answers = yield from _as_they_stand(answers)
    return Submitted([answers[i] for i in range(len(submissions))], [p for p, _ in parcels], lanes, wake_at)


def _as_they_stand(
    answers: dict[int, list[Receipt] | Repeated | Reused],
) -> Script[dict[int, list[Receipt] | Repeated | Reused]]:
    """What was accepted before may have gone on since: such receipts say how their executions stand now."""
    old = [r for answer in answers.values() for r in _receipts_of(answer) if _is_old(r, answer)]
    if not old:
        return answers
    ranges = [(parcel_of(r.execution_id), index_of(r.execution_id), index_of(r.execution_id) + r.count) for r in old]
    found = iter((yield from standing(ranges)))

    def restated(answer: list[Receipt] | Repeated | Reused) -> list[Receipt]:
        told = ((r, next(found)) if _is_old(r, answer) else (r, None) for r in _receipts_of(answer))
        return [receipt for r, stands in told for receipt in ([r] if stands is None else _in_pieces(r, stands))]

    return {
        i: answer if isinstance(answer, Reused) else Repeated(new) if isinstance(answer, Repeated) else new
        for i, answer in answers.items()
        for new in [restated(answer)]
    }


def _receipts_of(answer: list[Receipt] | Repeated | Reused) -> list[Receipt]:
    return [] if isinstance(answer, Reused) else answer.answer if isinstance(answer, Repeated) else answer


def _is_old(receipt: Receipt, answer: object) -> bool:
    return receipt.deduplicated or isinstance(answer, Repeated)


def _in_pieces(receipt: Receipt, stands: Sequence[Piece]) -> list[Receipt]:
    """A lot is told in pieces where its executions stand apart."""
    parcel = parcel_of(receipt.execution_id)
    return [
        msgspec.structs.replace(receipt, execution_id=execution_id(parcel, lo), state=state, count=hi - lo)
        for lo, hi, state in stands
    ]


def _known_requests(
    submissions: Sequence[Submission], now: Instant
) -> Script[dict[int, list[Receipt] | Repeated | Reused]]:
    """Reserve the requests' idempotency keys; those taken are answered from the store."""
    keyed = {(s.idempotency.namespace, s.idempotency.route, s.idempotency.key): s.idempotency
             for s in submissions if s.idempotency}  # fmt: skip
    mine = yield from _reserve(keyed, now)
    losers = sorted(keyed.keys() - mine)
    stored = (yield from _stored(losers, now)) if losers else {}
    expired = {key: keyed[key] for key in losers if key not in stored}
    if expired:
        yield ForEach(FREE_IDEMPOTENT, IDEMPOTENT, sorted(expired), (now,))
        mine |= yield from _reserve(expired, now)
        if not expired.keys() <= mine:  # somebody else was quicker, or whoever was about to replace it did not
            raise Again
    return _answer_known(submissions, mine, stored)


RequestKey = tuple[int, str, str]  # namespace, route, key


def _reserve(keyed: Mapping[RequestKey, Idempotency], now: Instant) -> Script[set[RequestKey]]:
    """Take keys that nobody has."""
    columns: shelves.Columns = (*IDEMPOTENT, ("body_hash", "bytea"), ("until", "bigint"), ("created_at", "bigint"))
    rows = yield Insert(
        "idempotency",
        columns,
        [(*key, keyed[key].body_hash, keyed[key].until, now) for key in sorted(keyed)],
        conflict="ON CONFLICT DO NOTHING",
        returning="namespace, route, key",
    )
    return {(row[0], row[1], row[2]) for row in rows}


def _stored(keys: Sequence[RequestKey], now: Instant) -> Script[dict[RequestKey, tuple[bytes, bytes]]]:
    """What was asked and answered under these keys, where they have not expired."""
    rows = yield ForEach(READ_IDEMPOTENT, IDEMPOTENT, keys, (now,))
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in rows}


def _answer_known(
    submissions: Sequence[Submission],
    mine: set[RequestKey],
    stored: Mapping[RequestKey, tuple[bytes, bytes]],
) -> dict[int, list[Receipt] | Repeated | Reused]:
    """The first of equal requests in one batch goes on; a twin in the same batch waits for the next batch."""
    answers: dict[int, list[Receipt] | Repeated | Reused] = {}
    for i, submission in enumerate(submissions):
        own = submission.idempotency
        if own is None:
            continue
        key = (own.namespace, own.route, own.key)
        if key in mine:
            mine.discard(key)
        elif key in stored:
            body_hash, answer = stored[key]
            same = bytes(body_hash) == own.body_hash and answer is not None
            answers[i] = Repeated(msgspec.json.decode(answer, type=list[Receipt])) if same else Reused()
        else:
            raise TwinRequests
    return answers


class TwinRequests(Exception):
    """Two requests with one idempotency key met in one batch: they are repeated one at a time."""


def _check_jobs(executions: Iterable[Asked]) -> Script[None]:
    """Every job still has the version the request was resolved against."""
    resolved = {(e.envelope.job, e.envelope.version) for e in executions}
    if not resolved:
        return
    rows = yield ForEach(CURRENT, (("id", "uuid"),), [(job,) for job in sorted({job for job, _ in resolved})])
    current = {job: version for job, version, state in rows if state != "deleted"}
    moved = {job for job, version in resolved if current.get(job) != version}
    if moved:
        raise JobMoved(moved)


def _take_keys(executions: Sequence[Asked], now: Instant) -> Script[dict[UniqueKey, UUID]]:
    """Take the unique keys; those held by others come back with their execution."""
    wanted = {e.unique: e for e in executions if isinstance(e, NewExecution) and e.unique}
    if not wanted:
        return {}
    keys = sorted(wanted)
    yield ForEach(FREE_EXPIRED, UNIQUE, keys, (now,))
    columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"), ("until", "bigint"))
    rows = yield Insert(
        "unique_keys",
        columns,
        [(*key, UUID(int=0), now + wanted[key].unique_for) for key in keys],
        conflict="ON CONFLICT DO NOTHING",
        returning="namespace, scope, key",
    )
    mine = {tuple(row) for row in rows}
    losers = [key for key in keys if key not in mine]
    if not losers:
        return {}
    held = yield ForEach(READ_KEYS, UNIQUE, losers, (now,))
    if len(held) < len(losers):  # gone meanwhile, or whoever was about to replace them did not: they may be ours now
        raise Again
    return {(row[0], row[1], row[2]): row[3] for row in held}


def place(
    executions: Sequence[Asked], known: dict[UniqueKey, UUID], new_id: Callable[[], UUID], now: Instant
) -> tuple[list[list[Receipt]], list[tuple[Parcel, int]]]:
    """Give winners their place in a parcel, losers what their key stands for; the receipts of each, in order."""
    groups: dict[tuple[Envelope, int], list[int]] = {}
    first: dict[UniqueKey, int] = {}
    for i, e in enumerate(executions):
        if e.unique is not None and (e.unique in known or e.unique in first):
            continue
        if e.unique is not None:
            first[e.unique] = i
        groups.setdefault((e.envelope, e.rank_lead), []).append(i)
    receipts: dict[int, list[Receipt]] = {}
    parcels: list[tuple[Parcel, int]] = []
    for (envelope, lead), members in groups.items():
        filled = list(_fill(envelope, [executions[i] for i in members], new_id, now))
        parcels += [(parcel, lead) for parcel in filled]
        receipts |= zip(members, _receipts([_items(executions[i]) for i in members], filled, now), strict=True)
    for i, e in enumerate(executions):
        if i not in receipts and e.unique is not None:
            held = known.get(e.unique) or receipts[first[e.unique]][0].execution_id
            receipts[i] = [Receipt(held, deduplicated=True)]
    return [receipts[i] for i in range(len(executions))], parcels


def _items(asked: Asked) -> Sequence[bytes]:
    return (asked.item,) if isinstance(asked, NewExecution) else asked.items


def _fill(envelope: Envelope, asked: Sequence[Asked], new_id: Callable[[], UUID], now: Instant) -> Iterator[Parcel]:
    """Fill parcels of one envelope; what is due at once is due at the batch's instant."""
    due = msgspec.structs.replace(envelope, due_at=envelope.due_at or now)
    items = [item for e in asked for item in _items(e)]
    extras = [e.extra for e in asked for _ in _items(e)]
    start = 0
    for count in loads(map(len, items)):
        cut = slice(start, start + count)
        start += count
        yield make_parcel(parcel_id(new_id()), due, items[cut], extras[cut], now)


def _receipts(lots: Iterable[Sequence[bytes]], parcels: Sequence[Parcel], now: Instant) -> Iterator[list[Receipt]]:
    """Where each lot came to lie in the parcels that were filled with them in order."""
    at = offset = 0
    for lot in lots:
        mine: list[Receipt] = []
        left = len(lot)
        while left:
            parcel = parcels[at]
            count = min(left, len(parcel) - offset)
            state = "queued" if parcel.envelope.due_at <= now else "waiting"
            mine.append(Receipt(execution_id(parcel.id, offset), state=state, count=count))
            left, offset = left - count, offset + count
            if offset == len(parcel):
                at, offset = at + 1, 0
        yield mine


def put_parcels(
    parcels: Sequence[tuple[Parcel, int]], now: Instant, also: Sequence[ForEach] = ()
) -> Script[tuple[dict[int, int], Instant | None]]:
    """Write parcels and put each on its shelf, and change what else there is to change.

    Returns the lanes that got something and the next timer.
    """
    written = Insert("parcels", PARCELS, [_parcel_row(p) for p, _ in parcels])
    ready = [_queued(p, lead, now) for p, lead in parcels if p.envelope.due_at <= now]
    later = [_waiting(p) for p, _ in parcels if p.envelope.due_at > now]
    yield Together([written, shelves.put_queued(ready), shelves.put_waiting(later), *also])
    lanes: dict[int, int] = {}
    for slice in ready:
        lanes[slice.lane] = min(slice.rank, lanes.get(slice.lane, slice.rank))
    return lanes, min((s.wake_at for s in later if s.wake_at is not None), default=None)


def _parcel_row(p: Parcel) -> tuple[object, ...]:
    e = p.envelope
    return (
        p.id, e.namespace, e.job, e.version, e.queue, e.lane, e.priority, e.deadline, e.due_at, e.keys, e.parent,
        e.delivery, len(p), p.items.ends, p.items.blob, p.extras, p.submitted_at,
    )  # fmt: skip


def _queued(p: Parcel, lead: int, now: Instant) -> Queued:
    e = p.envelope
    return Queued(
        parcel=p.id, lo=0, hi=len(p), job=e.job, queue=e.queue, namespace=e.namespace, lane=e.lane,
        rank=e.due_at - lead, queued_at=now, width=p.width,
    )  # fmt: skip


def _waiting(p: Parcel) -> Waiting:
    e = p.envelope
    return Waiting(
        parcel=p.id, lo=0, hi=len(p), job=e.job, queue=e.queue, namespace=e.namespace, width=p.width,
        wake_at=e.due_at, reason="delay",
    )  # fmt: skip


def _name_keys(asked: Sequence[Asked], placed: Sequence[Sequence[Receipt]]) -> Iterator[ForEach]:
    """Write into each key taken which execution it stands for."""
    keyed = [(e.unique, mine[0]) for e, mine in zip(asked, placed, strict=True) if e.unique is not None]
    rows = [(*unique, receipt.execution_id) for unique, receipt in keyed if not receipt.deduplicated]
    if rows:
        columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"))
        yield ForEach(NAME_KEYS, columns, rows)


def _remember_answers(answered: Sequence[tuple[Submission, object]]) -> Iterator[ForEach]:
    rows = [
        (s.idempotency.namespace, s.idempotency.route, s.idempotency.key, msgspec.json.encode(answer))
        for s, answer in answered
        if s.idempotency
    ]
    if rows:
        columns: shelves.Columns = (*IDEMPOTENT, ("answer", "bytea"))
        yield ForEach(ANSWER_IDEMPOTENT, columns, rows)


PARCEL_HEADS = Statement(
    "parcels",
    f"SELECT {shelves.names(PARCELS, 'p.')} FROM given JOIN parcels p ON p.id = given.id",
)


def read_parcels(ids: Sequence[UUID]) -> Script[list[Parcel]]:
    """Parcels by id; they never change, so they may be cached."""
    rows = yield ForEach(PARCEL_HEADS, (("id", "uuid"),), [(id,) for id in ids])
    return [
        Parcel(
            id=r[0],
            envelope=Envelope(
                namespace=r[1], job=r[2], version=r[3], queue=r[4], lane=r[5], priority=r[6], deadline=r[7],
                due_at=r[8], keys=r[9], parent=r[10], delivery=r[11],
            ),
            items=Packed(r[13], r[14]),
            extras=r[15],
            submitted_at=r[16],
        )
        for r in rows
    ]  # fmt: skip
