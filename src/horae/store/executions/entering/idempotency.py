"""Repeated requests: a submission reserves the Idempotency-Key of its request, and stores the answer with the key.

The unique key of a single execution refers to this execution for a given time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.executions.submission import (
    Idempotency,
    NewExecution,
    NewItems,
    Receipt,
    RepeatedRequest,
    ReusedKey,
    Submission,
    SubmissionAnswer,
    UniqueKey,
)
from horae.store.base import shelves
from horae.store.script import Again, ForEach, Insert, Script, Statement

IDEMPOTENT: shelves.Columns = (("namespace", "int"), ("route", "text"), ("key", "text"))
RESERVED: shelves.Columns = (
    *IDEMPOTENT, ("body_hash", "bytea"), ("until", "bigint"), ("created_at", "bigint"), ("status", "int"),
    ("answer", "bytea"),
)  # fmt: skip
ACCEPTED = 201
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
    f"UPDATE idempotency SET status = {ACCEPTED}, answer = given.answer FROM given"
    " WHERE idempotency.namespace = given.namespace AND idempotency.route = given.route"
    " AND idempotency.key = given.key",
)
RequestKey = tuple[int, str, str]  # namespace, route, key
UNIQUE: shelves.Columns = (("namespace", "int"), ("scope", "text"), ("key", "text"))
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


def known_requests(
    submissions: Sequence[Submission], drafts: Mapping[int, object], now: Instant
) -> Script[dict[int, SubmissionAnswer]]:
    """Reserve the idempotency keys of requests, with the drafted answers if there are any.

    Return the answers to the requests whose keys were reserved earlier, by index.
    """
    keyed = {
        (s.idempotency.namespace, s.idempotency.route, s.idempotency.key): (s.idempotency, drafts.get(i))
        for i, s in enumerate(submissions)
        if s.idempotency
    }
    mine = yield from _reserve(keyed, now)
    losers = sorted(keyed.keys() - mine)
    stored = (yield from _stored(losers, now)) if losers else {}
    expired = {key: keyed[key] for key in losers if key not in stored}
    if expired:
        yield ForEach(FREE_IDEMPOTENT, IDEMPOTENT, sorted(expired), (now,))
        mine |= yield from _reserve(expired, now)
        if not expired.keys() <= mine:  # another transaction took the key, or was about to and was rolled back
            raise Again
    return _answer_known(submissions, mine, stored)


def stored_answer(own: Idempotency, now: Instant) -> Script[list[Receipt] | None]:
    """Return the answer that was stored for an earlier request with this key and this body; None if there is none."""
    key = own.namespace, own.route, own.key
    body_hash, answer = (yield from _stored([key], now)).get(key, (b"", None))
    if answer is None or bytes(body_hash) != own.body_hash:
        return None
    return msgspec.json.decode(answer, type=list[Receipt])


def _reserve(keyed: Mapping[RequestKey, tuple[Idempotency, object]], now: Instant) -> Script[set[RequestKey]]:
    """Insert keys that do not exist yet; return them."""
    rows = yield Insert(
        "idempotency",
        RESERVED,
        [_reserved(key, *keyed[key], now) for key in sorted(keyed)],  # guard: requests-in-order
        conflict="ON CONFLICT DO NOTHING",  # guard: request-taken-once
        returning="namespace, route, key",
    )
    return {(row[0], row[1], row[2]) for row in rows}


def _reserved(key: RequestKey, own: Idempotency, draft: object, now: Instant) -> tuple[object, ...]:
    answer = None if draft is None else msgspec.json.encode(draft)
    return (*key, own.body_hash, own.until, now, None if answer is None else ACCEPTED, answer)


def _stored(keys: Sequence[RequestKey], now: Instant) -> Script[dict[RequestKey, tuple[bytes, bytes]]]:
    """Return the hash of the request body and the answer that each of these keys stores, unless the key has expired."""
    rows = yield ForEach(READ_IDEMPOTENT, IDEMPOTENT, keys, (now,))
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in rows}


def _answer_known(
    submissions: Sequence[Submission],
    mine: set[RequestKey],
    stored: Mapping[RequestKey, tuple[bytes, bytes]],
) -> dict[int, SubmissionAnswer]:
    """Return the answers to repeated requests; raise TwinRequests if two requests of this batch share a key."""
    answers: dict[int, SubmissionAnswer] = {}
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
            answers[i] = RepeatedRequest(msgspec.json.decode(answer, type=list[Receipt])) if same else ReusedKey()
        else:
            raise TwinRequests
    return answers


class TwinRequests(Exception):
    """Raised if two requests of a batch share an idempotency key, so that the caller submits them one at a time."""


def remember(answered: Iterable[tuple[Submission, object]]) -> Iterator[ForEach]:
    """Yield the update that stores answers with their keys, if the keys were reserved without answers."""
    rows = [
        (s.idempotency.namespace, s.idempotency.route, s.idempotency.key, msgspec.json.encode(answer))
        for s, answer in answered
        if s.idempotency
    ]
    if rows:
        columns: shelves.Columns = (*IDEMPOTENT, ("answer", "bytea"))
        yield ForEach(ANSWER_IDEMPOTENT, columns, rows)


def take_keys(executions: Sequence[NewItems], now: Instant) -> Script[dict[UniqueKey, UUID]]:
    """Take the unique keys of requests; return the keys that earlier requests have taken, with their executions."""
    wanted = {e.unique: e for e in executions if isinstance(e, NewExecution) and e.unique}
    if not wanted:
        return {}
    keys = sorted(wanted)  # guard: keys-in-order
    yield ForEach(FREE_EXPIRED, UNIQUE, keys, (now,))
    columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"), ("until", "bigint"))
    rows = yield Insert(
        "unique_keys",
        columns,
        [(*key, UUID(int=0), now + wanted[key].unique_for) for key in keys],
        conflict="ON CONFLICT DO NOTHING",  # guard: key-taken-once
        returning="namespace, scope, key",
    )
    mine = {tuple(row) for row in rows}
    losers = [key for key in keys if key not in mine]
    if not losers:
        return {}
    held = yield ForEach(READ_KEYS, UNIQUE, losers, (now,))
    # Keys were deleted meanwhile, or a transaction that was about to replace them was rolled back: try again.
    if len(held) < len(losers):  # guard: key-gone-meanwhile
        raise Again
    return {(row[0], row[1], row[2]): row[3] for row in held}


def assign_keys(
    asked: Sequence[NewItems], placed: Sequence[Sequence[Receipt]], known: Collection[UniqueKey]
) -> Iterator[ForEach]:
    """Yield the update that sets the execution of each key that was not `known` before."""
    taken = {
        e.unique: mine[0].execution_id
        for e, mine in zip(asked, placed, strict=True)
        if e.unique is not None and e.unique not in known
    }
    rows = [(*unique, execution) for unique, execution in taken.items()]
    if rows:
        columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"))
        yield ForEach(NAME_KEYS, columns, rows)
