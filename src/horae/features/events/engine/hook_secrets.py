"""The secrets of webhooks: each is sealed (encrypted) in the store, or is a reference to a secret of the namespace."""

import base64
from contextlib import suppress
from uuid import UUID

import structlog

from horae.engine.base.sealing import Sealer
from horae.engine.tenancy.secrets import MOST_CHECKED, Secrets
from horae.env import Env, Instant
from horae.errors import BadInput, Busy, MasterKeyMissing
from horae.features.events.store import hooks
from horae.features.events.store.hooks import Hook, HookSecret
from horae.model.base.webhook_signature import check_secret
from horae.model.tenancy.secret_refs import SCHEME, is_stored
from horae.store.contract import Store

SEALED = "§"  # the prefix of a sealed secret; plain secrets are ASCII
PAGE = 500
log = structlog.get_logger("horae.engine")


class HookSecrets:
    """The sealing and opening of the secrets of webhooks."""

    def __init__(self, env: Env, store: Store, sealer: Sealer, secrets: Secrets) -> None:
        self._store, self._sealer, self._secrets = store, sealer, secrets

    async def check(self, namespace: int, text: str) -> str:
        """Return the text if it is a valid secret of a webhook, or a reference to one; otherwise raise BadInput."""
        if not text.startswith(SCHEME):
            return check_secret(text)
        name = text.removeprefix(SCHEME)
        if not is_stored(name):
            remedy = 'Refer to a secret of the store: "secret://NAME".'
            raise BadInput("This refers to a secret that only workers have.", remedy, field="secret")
        given = await self._secrets.grant(namespace, [name])
        if name in given.problems:
            raise BadInput(given.problems[name], field="secret")
        check_secret(given.values[name], f'secret "{name}"')
        return text

    def stored_form(self, job: UUID, trigger: str, text: str) -> str:
        """Return a secret in its stored form: sealed, or unchanged if it is a reference or there is no master key."""
        if text.startswith(SCHEME) or not self._sealer.can_seal:
            return text
        return SEALED + base64.b64encode(self._sealer.seal(text.encode(), _place(job, trigger))).decode()

    async def valid(self, hook: Hook, now: Instant) -> list[str]:
        """Return the valid secrets of a webhook. Raises Busy if none can be opened, so that the sender tries again."""
        found = []
        kept = hook.valid_secrets(now)
        for text in kept:
            try:
                found.append(await self._opened(hook, text))
            except MasterKeyMissing as error:
                log.error("a webhook cannot be verified", trigger=hook.trigger, job=str(hook.job), error=str(error))
        if kept and not found:
            raise Busy("This webhook cannot be verified now.", "Send it again later; the server's log says why.")
        return found

    async def _opened(self, hook: Hook, text: str) -> str:
        if text.startswith(SCHEME):
            name = text.removeprefix(SCHEME)
            given = await self._secrets.grant(hook.namespace, [name])
            if name in given.problems:
                raise MasterKeyMissing(given.problems[name])
            return given.values[name]
        if not text.startswith(SEALED):
            return text
        return self._sealer.open(base64.b64decode(text[len(SEALED) :]), _place(hook.job, hook.trigger)).decode()

    async def count_readable(self) -> tuple[int, int]:
        """Count the sealed secrets that can be opened with the present master keys, and those that cannot."""
        opened = looked = 0
        after = b""
        while looked < MOST_CHECKED and (
            found := await self._store.read(lambda after=after: hooks.page_after(after, PAGE))  # type: ignore[misc]
        ):
            for hook in found:
                after = hook.hash
                for secret in hook.secrets:
                    if secret.text.startswith(SEALED):
                        looked += 1
                        with suppress(MasterKeyMissing):
                            await self._opened(hook, secret.text)
                            opened += 1
        return opened, looked - opened

    async def reseal(self) -> tuple[int, int]:
        """Seal all secrets with the first master key; return how many changed, and how many stayed as they were."""
        resealed = current = 0
        after = b""
        while found := await self._store.read(lambda after=after: hooks.page_after(after, PAGE)):  # type: ignore[misc]
            for hook in found:
                after = hook.hash
                anew = [HookSecret(self._anew(hook, secret.text), secret.until) for secret in hook.secrets]
                changed = sum(new != old for new, old in zip(anew, hook.secrets, strict=True))
                current += len(anew) - changed
                if changed and await self._store.write(
                    lambda hook=hook, anew=anew: hooks.replace_secrets(hook, anew)  # type: ignore[misc]
                ):
                    resealed += changed
        return resealed, current

    def _anew(self, hook: Hook, text: str) -> str:
        if text.startswith(SCHEME):
            return text
        place = _place(hook.job, hook.trigger)
        if not text.startswith(SEALED):
            return self.stored_form(hook.job, hook.trigger, text)
        sealed = base64.b64decode(text[len(SEALED) :])
        if self._sealer.is_current(sealed):
            return text
        return SEALED + base64.b64encode(self._sealer.reseal(sealed, place)).decode()


def _place(job: UUID, trigger: str) -> bytes:
    return f"hooks/{job}/{trigger}".encode()
