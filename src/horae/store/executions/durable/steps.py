"""Remembered steps: results that a resumed execution does not compute again."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Raw

from horae.env import Instant
from horae.model.fleet.protocol import KnownSteps, Step, StepRemembered
from horae.store.base import shelves
from horae.store.executions.first_starts import BEGAN, STEPS
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Insert, Script, Statement, Together

CHECKPOINT = "@checkpoint"  # the name under which a checkpoint is stored; unlike a step, the next one replaces it
HELD = Statement(
    "item_held",
    "SELECT 1 FROM running r JOIN sessions s ON s.id = r.session WHERE r.parcel = $2 AND r.lo <= $3 AND r.hi > $3"
    " AND r.session = $1 AND ($4::int IS NULL OR r.attempt = $4) AND s.ended_at IS NULL",
)
# Selects the reported steps of items that the session holds at the reported attempt, each with the result that is
# stored under the name of the step, if there is one.
HELD_STEPS = Statement(
    "held_steps",
    "SELECT given.at, s.result FROM given JOIN running r ON r.parcel = given.parcel AND r.lo <= given.item"
    " AND r.hi > given.item AND r.session = given.session AND r.attempt = given.attempt"
    " LEFT JOIN steps s ON s.parcel = given.parcel AND s.item = given.item AND s.name = given.name",
)
HELD_BY: shelves.Columns = (
    ("session", "uuid"), *shelves.ITEM, ("attempt", "int"), ("name", "text"), ("at", "int"),
)  # fmt: skip
NEWEST = (
    "ON CONFLICT (parcel, item, name)"
    " DO UPDATE SET attempt = excluded.attempt, result = excluded.result, at = excluded.at"
)
# Selects as many results as fit into a number of bytes, but at least one.
KNOWN = Statement(
    "known_steps",
    "SELECT name, result FROM (SELECT s.name, s.result,"
    " sum(length(s.result)) OVER (ORDER BY s.name) - length(s.result) AS before FROM steps s"
    " JOIN parcels p ON p.id = s.parcel WHERE s.parcel = $1 AND s.item = $2 AND p.namespace = $3 AND s.name > $4"
    f" AND s.name <> '{BEGAN}'"
    " ORDER BY s.name LIMIT $5) AS found WHERE before <= $6 ORDER BY name",
)
MOST_KNOWN, MOST_BYTES = 5_000, 1024 * 1024  # steps in one answer, and bytes of their results


def is_held(session: UUID, parcel: UUID, item: int, attempt: int | None = None) -> Script[bool]:
    """Tell whether a live session holds an item at this attempt, or at any attempt if none is given."""
    rows = yield Fetch(HELD, (session, parcel, item, attempt))
    return bool(rows)


def remember(reported: Sequence[tuple[UUID, Step]], now: Instant) -> Script[list[StepRemembered]]:
    """Store the results of steps, or return the results that are already stored under their names.

    Steps of items that their session does not hold are refused.
    """
    sessions = yield from lock_sessions([session for session, _ in reported])  # guard: step-locks-session
    given = [
        (session, step.parcel, step.item, step.attempt, step.name, at)
        for at, (session, step) in enumerate(reported)
        if session in sessions and sessions[session].is_present  # guard: step-of-live-session
    ]
    held: dict[int, bytes | None] = dict((yield ForEach(HELD_STEPS, HELD_BY, given))) if given else {}
    kept: dict[tuple[UUID, int, str], Step] = {}
    answers: list[StepRemembered] = []
    for at, (_, step) in enumerate(reported):
        if at not in held:
            answers.append(StepRemembered(refused=True))
            continue
        place, first = (step.parcel, step.item, step.name), held[at]
        if first is None and place in kept:
            first = bytes(kept[place].result)
        if first is not None and step.name != CHECKPOINT:
            answers.append(StepRemembered(known=True, result=Raw(first)))
            continue
        kept[place] = step
        answers.append(StepRemembered())
    if kept:
        yield Together(_put(list(kept.values()), now))
    return answers


def put(parcel: UUID, item: int, name: str, attempt: int, result: bytes, now: Instant) -> Insert:
    """Insert the result of one step; a result stored before stays."""
    return Insert("steps", STEPS, [(parcel, item, name, attempt, result, now)], conflict="ON CONFLICT DO NOTHING")


def _put(steps: Sequence[Step], now: Instant) -> list[Insert]:
    rows = [(s.parcel, s.item, s.name, s.attempt, bytes(s.result), now) for s in steps]
    return [
        Insert("steps", STEPS, [r for r in rows if r[2] != CHECKPOINT], conflict="ON CONFLICT DO NOTHING"),
        Insert("steps", STEPS, [r for r in rows if r[2] == CHECKPOINT], conflict=NEWEST),
    ]


def recall(session: UUID, parcel: UUID, item: int, namespace: int, after: str = "") -> Script[KnownSteps | None]:
    """Return the finished steps of an item, as `known_steps` does, or None when the session does not hold the item."""
    if not (yield from is_held(session, parcel, item)):
        return None
    return (yield from known_steps(parcel, item, namespace, after))


def known_steps(parcel: UUID, item: int, namespace: int, after: str = "") -> Script[KnownSteps]:
    """Return the finished steps of an execution whose names follow `after`, by name, as many as fit into one answer."""
    rows = yield Fetch(KNOWN, (parcel, item, namespace, after, MOST_KNOWN, MOST_BYTES))
    steps = {name: Raw(result) for name, result in rows}
    full = len(rows) == MOST_KNOWN or sum(len(result) for _, result in rows) > MOST_BYTES
    return KnownSteps(steps=steps, next=rows[-1][0] if full else None)
