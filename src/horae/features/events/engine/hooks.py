"""Webhooks: create, change and delete them, and receive their calls."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal
from uuid import UUID

import structlog
from msgspec import UNSET, Struct

from horae.engine.base.refs import find_job
from horae.engine.base.tokens import new_hook_secret, new_hook_token
from horae.env import Env, Instant, Micros
from horae.errors import BadInput, BadSignature, NotFound, TooLarge
from horae.features.events.engine.hook_secrets import HookSecrets
from horae.features.events.engine.intake import EventIntake
from horae.features.events.model.delivery import read_delivery
from horae.features.events.model.notifications import ObjectStoreNotice
from horae.features.events.model.view import HookView, WebhookReceipt
from horae.features.events.store import hooks
from horae.features.events.store.hooks import Hook, HookSecret
from horae.model.base.duration import DAY
from horae.model.base.instant import format_instant
from horae.model.base.webhook_signature import SignedMessage, verify
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.events.values import NewEvent
from horae.store.contract import Store
from horae.store.script import Script
from horae.store.triggers import triggers

OLD_FOR: Micros = DAY  # how long an old secret or URL stays valid beside the new one
LONGEST_OLD: Micros = 30 * DAY
CallOutcome = Literal["accepted", "repeated", "unsigned", "unknown", "unreadable"]
log = structlog.get_logger("horae.engine")


class _HookTrigger(Struct, frozen=True):
    """A trigger that has a webhook, and its job."""

    job: UUID
    job_name: str
    name: str
    trigger: EventTrigger


class Hooks:
    """The operations on webhooks, and the receiver of their calls."""

    def __init__(
        self, env: Env, store: Store, intake: EventIntake, url: Callable[[], str], secrets: HookSecrets
    ) -> None:
        self._env, self._store, self._intake, self._url, self._secrets = env, store, intake, url, secrets
        self.counts: Counter[CallOutcome] = Counter()

    async def create(
        self, namespace: int, ref: str, name: str, *, secret: str | None = None, new_url: bool = False,
        overlap: Micros = OLD_FOR,
    ) -> HookView:  # fmt: skip
        """Create a trigger's webhook, or give it a new secret; the old secret stays valid for `overlap`.

        With `new_url` it also gets a new URL. A webhook without signatures always gets a new URL, because its URL is
        its only secret.
        """
        target, now = await self._trigger(namespace, ref, name), self._env.now()
        text = new_hook_secret() if secret is None else await self._secrets.check(namespace, secret)
        token, until = new_hook_token(), now + min(overlap, LONGEST_OLD)
        hook = Hook(
            hash=_hash(token), namespace=namespace, job=target.job, trigger=target.name, created_at=now,
            secrets=[HookSecret(self._secrets.stored_form(target.job, target.name, text))],
        )  # fmt: skip
        anew = new_url or target.trigger.verify == "none"
        made, rotated = await self._store.write(lambda: _make(hook, until, now, anew=anew))
        return HookView(
            job=target.job_name, trigger=target.name, verify=str(target.trigger.verify), created_at=format_instant(now),
            url=f"{self._url()}/api/v1/hooks/{token}" if made else UNSET,
            secret=text if target.trigger.verify == "signature" else UNSET,
            old_valid_until=format_instant(until) if rotated else None,
            note=_note(target.trigger, made=made),
        )  # fmt: skip

    async def get(self, namespace: int, ref: str, name: str) -> HookView:
        """Return a trigger's webhook, without its URL and secret."""
        target, now = await self._trigger(namespace, ref, name), self._env.now()
        found = await self._store.read(lambda: hooks.of_trigger(target.job, target.name, now))
        if not found:
            raise _none(target)
        newest = found[0]
        return HookView(
            job=target.job_name, trigger=target.name, verify=str(target.trigger.verify),
            created_at=format_instant(newest.created_at),
            old_valid_until=next((format_instant(hook.until) for hook in found[1:] if hook.until is not None), None),
        )  # fmt: skip

    async def delete(self, namespace: int, ref: str, name: str) -> None:
        """End a trigger's webhook at once, with all its URLs."""
        target, now = await self._trigger(namespace, ref, name), self._env.now()
        if not await self._store.write(lambda: hooks.end(target.job, target.name, now)):
            raise _none(target)

    async def receive(self, token: str, headers: Mapping[bytes, bytes], body: bytes) -> WebhookReceipt:
        """Verify and read a call, store its events and decide them. A refused call changes nothing."""
        now = self._env.now()
        # The webhook is found by a hash, so that the response time reveals nothing about similar tokens.
        found = await self._store.read(lambda: hooks.find(_hash(token), now))
        if found is None:
            self.counts["unknown"] += 1
            raise NotFound("There is no such webhook.", "Check its URL. The webhook or its trigger may have ended.")
        hook, trigger = found
        try:
            signed = await self._verified(hook, trigger, headers, body, now)
            content = self._read(hook, trigger, headers, body, signed)
        except BadSignature as error:
            self.counts["unsigned"] += 1
            log.warning("a webhook was refused", trigger=hook.trigger, job=str(hook.job), error=error.detail)
            raise
        except (BadInput, TooLarge):
            self.counts["unreadable"] += 1
            raise
        return await self._deliver(hook, trigger, content)

    async def _verified(
        self, hook: Hook, trigger: EventTrigger, headers: Mapping[bytes, bytes], body: bytes, now: Instant
    ) -> SignedMessage | None:
        return None if trigger.verify == "none" else verify(headers, body, await self._secrets.valid(hook, now), now)

    def _read(
        self,
        hook: Hook,
        trigger: EventTrigger,
        headers: Mapping[bytes, bytes],
        body: bytes,
        signed: SignedMessage | None,
    ) -> list[NewEvent] | ObjectStoreNotice:
        scope = "" if trigger.event is not None else f"hook:{hook.job}/{hook.trigger}"
        return read_delivery(headers, body, signed, name=trigger.event or hook.trigger, scope=scope)

    async def _deliver(
        self, hook: Hook, trigger: EventTrigger, content: list[NewEvent] | ObjectStoreNotice
    ) -> WebhookReceipt:
        """Store and decide the events of a call.

        If the webhook's trigger has an event name, the events go to all triggers that listen to this name, otherwise
        only to the webhook's trigger.
        """
        only = None if trigger.event is not None else (hook.job, hook.trigger)
        if isinstance(content, ObjectStoreNotice):
            log.info("a webhook received a notice", trigger=hook.trigger, job=str(hook.job), note=content.note)
            notice = NewEvent(
                name=trigger.event or hook.trigger, id=content.id, source=content.source, type=content.type,
                scope=f"notice:{hook.job}/{hook.trigger}",
            )  # fmt: skip
            taken = await self._intake.take(hook.namespace, [notice], only=(hook.job, ""), note=content.note)
            return WebhookReceipt(event_ids=[taken[0].key], fired=0, repeated=taken[0].repeated, note=content.note)
        taken = await self._intake.take(hook.namespace, content, only=only)
        repeated = all(event.repeated for event in taken)
        self.counts["repeated" if repeated else "accepted"] += 1
        fired = sum(one.execution is not None for event in taken if not event.repeated for one in event.outcomes)
        note = "This message was sent before: nothing fired again." if repeated else None
        return WebhookReceipt(event_ids=[event.key for event in taken], fired=fired, repeated=repeated, note=note)

    async def _trigger(self, namespace: int, ref: str, name: str) -> _HookTrigger:
        stored = await find_job(self._store, namespace, ref)
        timers = await self._store.read(lambda: triggers.of_job(stored.job.id))
        found = next((timer.trigger for timer in timers if timer.name == name), None)
        if found is None:
            known = ", ".join(timer.name for timer in timers) or "none"
            raise NotFound(f'Job "{stored.job.name}" has no trigger "{name[:128]}".', f"Its triggers: {known}.")
        if not isinstance(found, EventTrigger) or found.verify is None:
            remedy = 'Give the trigger "webhook": true, or {"verify": "none"} for senders that cannot sign.'
            raise BadInput(f'Trigger "{name}" has no webhook.', remedy, field="webhook")
        return _HookTrigger(stored.job.id, stored.job.name, name, found)


def _make(hook: Hook, until: Instant, now: Instant, *, anew: bool) -> Script[tuple[bool, bool]]:
    """Write a webhook; return whether a new URL was created, and whether an old URL or secret stays valid."""
    yield from hooks.lock(hook.job, hook.trigger)
    old = yield from hooks.of_trigger(hook.job, hook.trigger, now)
    if old and not anew:
        for one in old:
            yield from hooks.set_secret(one, hook.secrets[0].text, until, now)
        return False, True
    yield from hooks.end(hook.job, hook.trigger, until)
    yield from hooks.add(hook)
    return True, bool(old)


def _note(trigger: EventTrigger, *, made: bool) -> str:
    if not made:
        return "The URL stays as it is. The secret is not shown again."
    if trigger.verify == "none":
        return "Anyone with the URL can fire this trigger. The URL is not shown again."
    return "URL and secret are not shown again."


def _none(target: _HookTrigger) -> NotFound:
    remedy = f"Create one: `horae events webhook {target.job_name} {target.name}`."
    return NotFound(f'Trigger "{target.name}" of job "{target.job_name}" has no webhook yet.', remedy)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
