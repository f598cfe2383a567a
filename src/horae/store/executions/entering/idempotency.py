"""Repeated requests: a submission reserves the Idempotency-Key of its request, and stores the answer with the key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from horae.env import Instant
from horae.model.executions.submission import (
    Idempotency,
    Receipt,
    RepeatedRequest,
    ReusedKey,
    Submission,
    SubmissionAnswer,
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


RequestKey = tuple[int, str, str]  # namespace, route, key


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
