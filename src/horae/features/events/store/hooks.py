"""The table of webhooks: URLs by which other systems fire a trigger.

Tokens are stored as hashes. Secrets are sealed, not hashed, because signatures are verified with them. A webhook
belongs to the name of a trigger, so that it outlives the trigger's versions.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.values import Trigger
from horae.store.script import Fetch, Lock, Row, Script, Statement

_HOOK = "h.hash, h.namespace, h.job, h.trigger, h.secrets, h.created_at, h.until"
FIND = Statement(
    "find_hook",
    f"SELECT {_HOOK}, g.definition FROM hooks h JOIN jobs j ON j.id = h.job JOIN triggers g ON g.job = h.job"
    " AND g.name = h.trigger AND g.state <> 'ended' WHERE h.hash = $1 AND (h.until IS NULL OR h.until > $2)"
    " AND j.state <> 'deleted'",
)
OF_TRIGGER = Statement(
    "hooks_of_trigger",
    f"SELECT {_HOOK} FROM hooks h WHERE h.job = $1 AND h.trigger = $2 AND (h.until IS NULL OR h.until > $3)"
    " ORDER BY h.created_at DESC, h.hash",
)
ADD = Statement(
    "add_hook",
    "INSERT INTO hooks (hash, namespace, job, trigger, secrets, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
)
SET_SECRETS = Statement("set_hook_secrets", "UPDATE hooks SET secrets = $2 WHERE hash = $1")
SOME = Statement("some_hooks", f"SELECT {_HOOK} FROM hooks h WHERE h.hash > $1 ORDER BY h.hash LIMIT $2")
REPLACE = Statement(
    "replace_hook_secrets", "UPDATE hooks SET secrets = $3 WHERE hash = $1 AND secrets = $2 RETURNING hash"
)
END = Statement(
    "end_hooks",
    "UPDATE hooks SET until = $3 WHERE job = $1 AND trigger = $2 AND (until IS NULL OR until > $3) RETURNING hash",
)
MOST_SECRETS = 4  # secrets of a webhook that are valid at a time


class HookSecret(Struct, frozen=True, array_like=True):
    """A secret with which a sender signs, and the end of its validity."""

    text: str  # the secret as stored: sealed, a reference to a secret, or plain if there is no master key
    until: Instant | None = None


class Hook(Struct, frozen=True, kw_only=True):
    """A webhook as it is stored."""

    hash: bytes
    namespace: int
    job: UUID
    trigger: str
    secrets: list[HookSecret]
    created_at: Instant
    until: Instant | None = None

    def valid_secrets(self, now: Instant) -> list[str]:
        return [secret.text for secret in self.secrets if secret.until is None or now < secret.until]


def find(digest: bytes, now: Instant) -> Script[tuple[Hook, EventTrigger] | None]:
    """Return the webhook of a token with its present trigger, or None if either has ended."""
    rows = yield Fetch(FIND, (digest, now))
    if not rows:
        return None
    trigger = msgspec.json.decode(rows[0][7], type=Trigger)
    return (_hook(rows[0]), trigger) if isinstance(trigger, EventTrigger) and trigger.verify is not None else None


def lock(job: UUID, trigger: str) -> Script[None]:
    """Lock a trigger's webhooks against other changes."""
    yield Lock((f"hook:{job}:{trigger}",))


def of_trigger(job: UUID, trigger: str, now: Instant) -> Script[list[Hook]]:
    """Return the valid webhooks of a trigger, newest first."""
    rows = yield Fetch(OF_TRIGGER, (job, trigger, now))
    return [_hook(row) for row in rows]


def add(hook: Hook) -> Script[None]:
    """Store a new webhook."""
    secrets = msgspec.json.encode(hook.secrets).decode()
    yield Fetch(ADD, (hook.hash, hook.namespace, hook.job, hook.trigger, secrets, hook.created_at))


def set_secret(hook: Hook, text: str, old_until: Instant, now: Instant) -> Script[None]:
    """Set a new secret; the old ones stay valid until `old_until` at the latest. Raises BadInput if they are many."""
    old = [HookSecret(s.text, old_until if s.until is None else min(s.until, old_until)) for s in hook.secrets]
    kept = [s for s in old if s.until is not None and s.until > now and s.text != text]
    secrets = [HookSecret(text), *kept]
    if len(secrets) > MOST_SECRETS:
        remedy = 'Wait until the first of them ends, or end them now with the overlap "0s".'
        raise BadInput(f"{len(kept)} old secrets of this webhook are still valid.", remedy, field="overlap")
    yield Fetch(SET_SECRETS, (hook.hash, msgspec.json.encode(secrets).decode()))


def page_after(digest: bytes, limit: int) -> Script[list[Hook]]:
    """Return a page of the webhooks of all namespaces: those after `digest`, in the order of their hashes."""
    return [_hook(row) for row in (yield Fetch(SOME, (digest, limit)))]


def replace_secrets(hook: Hook, secrets: Sequence[HookSecret]) -> Script[bool]:
    """Replace the stored form of a webhook's secrets; return false if they were changed meanwhile."""
    before, after = (msgspec.json.encode(kept).decode() for kept in (hook.secrets, list(secrets)))
    return bool((yield Fetch(REPLACE, (hook.hash, before, after))))


def end(job: UUID, trigger: str, until: Instant) -> Script[int]:
    """Set the end of a trigger's webhooks to an instant; return their number."""
    return len((yield Fetch(END, (job, trigger, until))))


def _hook(row: Row) -> Hook:
    return Hook(
        hash=bytes(row[0]), namespace=row[1], job=row[2], trigger=row[3],
        secrets=msgspec.json.decode(row[4], type=list[HookSecret]), created_at=row[5], until=row[6],
    )  # fmt: skip
