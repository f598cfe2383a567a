"""Remembered steps: results that a resumed execution does not compute again."""

from uuid import UUID

from msgspec import Raw

from horae.env import Instant
from horae.model.protocol import Step, StepRemembered
from horae.store.moves.exchange import lock_sessions
from horae.store.script import Fetch, Script, Statement

HELD = Statement(
    "item_held",
    "SELECT 1 FROM running r JOIN sessions s ON s.id = r.session WHERE r.parcel = $2 AND r.lo <= $3 AND r.hi > $3"
    " AND r.session = $1 AND r.attempt = $4 AND s.state IN ('live', 'draining')",
)
REMEMBER = Statement(
    "remember_step",
    "INSERT INTO steps (parcel, item, name, attempt, result, at) VALUES ($1, $2, $3, $4, $5, $6)"
    " ON CONFLICT (parcel, item, name) DO NOTHING RETURNING name",
)
STEP = Statement("step", "SELECT result FROM steps WHERE parcel = $1 AND item = $2 AND name = $3")
STEPS = Statement(
    "steps",
    "SELECT s.name, s.result FROM steps s JOIN parcels p ON p.id = s.parcel"
    " WHERE s.parcel = $1 AND s.item = $2 AND p.namespace = $3 ORDER BY s.at",
)


def is_held(session: UUID, parcel: UUID, item: int, attempt: int) -> Script[bool]:
    """Whether a live session holds an item at an attempt."""
    rows = yield Fetch(HELD, (session, parcel, item, attempt))
    return bool(rows)


def remember(session: UUID, step: Step, now: Instant) -> Script[StepRemembered | None]:
    """Keep a result under its name, or tell the one kept before; None when the session does not hold the item."""
    yield from lock_sessions([session])
    if not (yield from is_held(session, step.parcel, step.item, step.attempt)):
        return None
    result = bytes(step.result)
    rows = yield Fetch(REMEMBER, (step.parcel, step.item, step.name, step.attempt, result, now))
    if rows:
        return StepRemembered(result=step.result, known=False)
    kept = yield Fetch(STEP, (step.parcel, step.item, step.name))
    return StepRemembered(result=Raw(kept[0][0]), known=True)


def known(parcel: UUID, item: int, namespace: int) -> Script[dict[str, Raw]]:
    """All steps an execution has finished."""
    rows = yield Fetch(STEPS, (parcel, item, namespace))
    return {name: Raw(result) for name, result in rows}
