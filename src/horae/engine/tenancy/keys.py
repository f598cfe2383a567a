"""API keys and the cookies of browsers: creation, checks and revocation.

A revocation or any other change of a key takes effect within `CACHED` seconds on every server.
"""

import hmac
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from horae.engine.base.tokens import digest_of, id_of, new_code, new_cookie, new_key_id, new_key_text
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import BadInput, Busy, Conflict, Forbidden, NotFound, Unauthorized
from horae.model.admission.rate import parse_rate
from horae.model.base.control_characters import refuse_controls
from horae.model.base.duration import DAY
from horae.model.tenancy.keys import KeyRights, StoredKey
from horae.model.tenancy.principal import (
    DEFAULT_NAMESPACE,
    LOCAL,
    Permission,
    Principal,
    RequestLimit,
    Role,
    check_grant,
    effective_permissions,
    refuse_more,
)
from horae.store.admission import quotas
from horae.store.contract import Store
from horae.store.tenancy import keys

CACHED = 5.0  # seconds for which a checked credential is accepted without reading the store
RECALLED = 300.0  # seconds for which `recall` accepts a checked key while the store is unavailable
MOST_CACHED = 10_000
NOTED_EVERY: Micros = 60 * SECOND  # how often the last use of a key is written
CODE_LIFE: Micros = 600 * SECOND
LONGEST_OVERLAP: Micros = 90 * DAY
SIGNED_IN_FOR: Micros = 7 * DAY
PERSONAL = "u_"  # the prefix of cookies of users who signed in with their own account
LEAST_PRESET = 32  # characters: a preset key must be as hard to guess as a generated one

Credential = tuple[Literal["key", "cookie"], bytes]  # kind and hash; the kind keeps a cookie from passing as a key

INSTALLATION_ADMIN = KeyRights(namespace=DEFAULT_NAMESPACE, role="admin", permissions=("installation",))


class NewKey(Struct, frozen=True):
    """A key that was just created. Its text is shown only now."""

    stored: StoredKey
    text: str


class NewCode(Struct, frozen=True):
    """A code that signs one browser in. Its text is shown only now."""

    text: str
    until: Instant

    def link(self, url: str) -> str:
        """Return a link with the code in its fragment, which browsers do not send and servers do not log."""
        return f"{url}/#code={self.text}"


class BrowserSignIn(Struct, frozen=True):
    """A new sign-in of a browser. The cookie's text is sent to the browser only."""

    cookie: str
    until: Instant
    principal: Principal


class CachedCredential(Struct):
    """A credential that was checked in the store. Times are monotonic, except `expires_at`."""

    principal: Principal
    expires_at: Instant | None
    until: float  # accepted until then
    recalled: float  # accepted until then by `recall`


class UserSessions(Protocol):
    """The sign-ins of users with their own accounts. The feature `users` implements it."""

    async def check(self, text: str) -> Principal | None: ...

    async def in_namespace(self, principal: Principal, name: str) -> Principal: ...

    def namespaces(self, principal: Principal) -> tuple[str, ...]: ...

    async def sign_out(self, text: str) -> None: ...


class ApiKeys:
    """Creates, checks and revokes keys; signs browsers in and out."""

    def __init__(self, env: Env, store: Store, users: UserSessions | None = None) -> None:
        self._env, self._store, self.users = env, store, users
        self._known: dict[Credential, CachedCredential] = {}
        # Principals in other namespaces and when they expire, by the key's id and the namespace's name.
        self._elsewhere: dict[tuple[str, str], tuple[Principal, float]] = {}

    async def has_admin(self) -> bool:
        """Return whether the installation has an administrator's key that lasts."""
        return await self._store.read(keys.has_admin)

    async def ensure_admin_key(self, preset: str | None = None, found: str = "") -> str | None:
        """Ensure that an administrator's key exists; return its text if it is new.

        A preset key is valid from now on. If there is no preset key, and the store has no admin key that lasts, a key
        is created and returned, so that the caller shows it once. `found` is a key that the administrator already has
        for another store: if this store does not know its id, it becomes the first key here, too.
        """
        if preset:
            await self._ensure_preset(preset)
            return None
        new = self._make("first administrator", INSTALLATION_ADMIN, None)
        if len(found) >= LEAST_PRESET and await self._store.read(lambda: keys.by_id(id_of(found))) is None:
            new = NewKey(replace(new.stored, id=id_of(found), hash=digest_of(found)), found)
        added = await self._store.write(lambda: keys.add_first_admin(new.stored))
        return new.text if added else None

    async def _ensure_preset(self, text: str) -> None:
        if len(text) < LEAST_PRESET:
            remedy = f"Use at least {LEAST_PRESET} random characters, for example: openssl rand -hex 32"
            raise BadInput(f"The preset admin key has only {len(text)} characters.", remedy, field="admin_key")
        key_id, digest = id_of(text), digest_of(text)
        known = await self._store.read(lambda: keys.by_id(key_id))
        granted = None if known is None or known.hash != digest else replace(known.grant, namespace_name="")
        if known is not None and granted == INSTALLATION_ADMIN and known.valid(self._env.now()):
            return
        stored = StoredKey(
            id=key_id, hash=digest, name="preset administrator", grant=INSTALLATION_ADMIN, created_at=self._env.now()
        )
        await self._store.write(lambda: keys.add(stored))

    async def create(
        self,
        namespace: int,
        name: str,
        role: Role,
        expires_at: Instant | None = None,
        *,
        permissions: Sequence[Permission] = (),
        queues: Sequence[str] = (),
        jobs: Sequence[str] = (),
        rate: str | None = None,
        by: Principal = LOCAL,
    ) -> NewKey:
        """Create a key on behalf of a principal. Raises BadInput, and Forbidden for rights that the principal lacks."""
        check_grant(by, namespace, role, permissions, queues, jobs)
        grant = KeyRights(
            namespace=namespace, role=role, permissions=tuple(sorted(set(permissions))), queues=tuple(queues),
            jobs=tuple(jobs), made_by=by.key or None,
        )  # fmt: skip
        if expires_at is not None and expires_at <= self._env.now():
            raise BadInput("The key would have expired already.", "Give a later expiresAt.", field="expiresAt")
        if rate is not None:
            rate = str(parse_rate(rate, "rate"))
        new = self._make(name, grant, expires_at, rate)
        await self._store.write(lambda: keys.add(new.stored))
        return new

    def _make(self, name: str, grant: KeyRights, expires_at: Instant | None, rate: str | None = None) -> NewKey:
        refuse_controls(name, "name")
        key_id, text = new_key_text()
        stored = StoredKey(
            id=key_id, hash=digest_of(text), name=name, grant=grant, created_at=self._env.now(), expires_at=expires_at,
            rate=rate,
        )  # fmt: skip
        return NewKey(stored, text)

    async def list(self, namespace: int, after: str = "", limit: int = 100) -> list[StoredKey]:
        """Return keys of a namespace in the order of their ids, including those that have ended."""
        return await self._store.read(lambda: keys.page(namespace, after, limit))

    async def rotate(self, namespace: int, key_id: str, overlap: Micros, by: Principal = LOCAL) -> NewKey:
        """Create a key that replaces another one with the same rights. Both are valid until the overlap ends.

        If the old key has an expiry, the new key gets the same lifetime, from now on. Raises NotFound, Conflict.
        """
        if not 0 <= overlap <= LONGEST_OVERLAP:
            remedy = "Give the time for which both keys are valid, such as 1d."
            raise BadInput("The overlap is longer than 90 days.", remedy, field="overlap")
        old, now = await self._own(namespace, key_id, by), self._env.now()
        ends = None if old.expires_at is None else now + (old.expires_at - old.created_at)
        new = self._make(old.name, replace(old.grant, made_by=by.key or None), ends, old.rate)
        if not await self._store.write(lambda: keys.rotate(old.id, new.stored, now + overlap, now)):
            raise Conflict(f'Key "{key_id}" has been rotated already.', "See `horae keys list` for its successor.")
        self.forget()
        return new

    async def _own(self, namespace: int, key_id: str, by: Principal) -> StoredKey:
        """Return a valid key of a namespace. Raises NotFound, and Forbidden if it has more rights than the caller."""
        stored = await self._store.read(lambda: keys.by_id(key_id))
        if stored is None or stored.grant.namespace != namespace or not stored.valid(self._env.now()):
            raise NotFound(f'No valid key "{key_id[:60]}".', "List keys with `horae keys list` or GET /api/v1/keys.")
        refuse_more(by, stored.grant.permissions)
        return stored

    async def revoke(self, namespace: int, key_id: str, by: Principal = LOCAL, *, force: bool = False) -> None:
        """End a key: at once on this server, within `CACHED` seconds on the others.

        Raises Conflict for the last key that administers the installation, unless forced.
        """
        old, now = await self._own(namespace, key_id, by), self._env.now()
        if not await self._store.write(lambda: keys.revoke(namespace, old.id, now, force=force)):
            raise Conflict(
                "This is the last key that administers the installation.",
                "Make another one first: `horae keys create NAME --role admin --permission installation`; or send"
                " `force`: a server makes a new key when it starts without any.",
            )
        self.forget()

    def forget(self) -> None:
        """Empty the cache of checked credentials. The cookies made with a revoked key end, too."""
        self._known.clear()
        self._elsewhere.clear()

    async def check(self, text: str) -> Principal | None:
        """Return the principal of a key; None when the key is not valid."""
        digest = digest_of(text)
        known = self._remembered(("key", digest))
        if known is not None:
            return known
        stored = await self._store.read(lambda: keys.by_id(id_of(text)))
        if stored is None or not hmac.compare_digest(stored.hash, digest):
            self._known.pop(("key", digest), None)
            return None
        return await self._admit(("key", digest), stored, None)

    def recall(self, text: str) -> Principal | None:
        """Return the principal of a recently checked key, for requests that are answered without the store.

        Each call extends the time for which the key is recalled. A key's own expiry is still respected.
        """
        known, now = self._known.get(("key", digest_of(text))), self._env.clock.monotonic()
        if known is None or known.recalled <= now or self._is_over(known):
            return None
        known.recalled = now + RECALLED
        return known.principal

    async def check_cookie(self, text: str) -> Principal | None:
        """Return the principal of a cookie; None when the cookie is not valid."""
        if self.users is not None and text.startswith(PERSONAL):
            return await self.users.check(text)
        digest = digest_of(text)
        known = self._remembered(("cookie", digest))
        if known is not None:
            return known
        found = await self._store.read(lambda: keys.key_of_cookie(digest, self._env.now()))
        return await self._admit(("cookie", digest), *found) if found else None

    def _remembered(self, shown: Credential) -> Principal | None:
        known = self._known.get(shown)
        if known is None or known.until <= self._env.clock.monotonic():
            return None
        return None if self._is_over(known) else known.principal

    def _is_over(self, known: CachedCredential) -> bool:
        return known.expires_at is not None and self._env.now() >= known.expires_at

    async def _admit(self, shown: Credential, stored: StoredKey, csrf: str | None) -> Principal | None:
        now = self._env.now()
        if not stored.valid(now):
            self._known.pop(shown, None)
            return None
        principal = _principal(stored, csrf)
        if len(self._known) >= MOST_CACHED:
            self._known.clear()
        checked_at = self._env.clock.monotonic()
        self._known[shown] = CachedCredential(principal, stored.expires_at, checked_at + CACHED, checked_at + RECALLED)
        await self._note_use(stored, now)
        return principal

    async def _note_use(self, stored: StoredKey, now: Instant) -> None:
        since = now - NOTED_EVERY
        if stored.last_used_at is not None and stored.last_used_at > since:
            return
        with suppress(Busy):  # a read-only or overloaded store must not refuse valid credentials
            await self._store.write(lambda: keys.record_use(stored.id, now, since))

    def namespaces(self, principal: Principal) -> tuple[str, ...]:
        """Return the namespaces that a signed-in user may choose from; keys have none to choose from."""
        return () if self.users is None else self.users.namespaces(principal)

    async def in_namespace(self, principal: Principal, name: str) -> Principal:
        """Return a principal in another namespace. Raises NotFound for unknown and forbidden namespaces alike."""
        if name == principal.namespace_name:
            return principal
        if self.users is not None and principal.kind == "user":
            return await self.users.in_namespace(principal, name)
        known = self._elsewhere.get((principal.key, name)) if principal.may("installation") else None
        if known is not None and known[1] > self._env.clock.monotonic():
            return replace(known[0], csrf=principal.csrf)
        found = await self._store.read(lambda: quotas.namespace_named(name)) if principal.may("installation") else None
        if found is None:
            remedy = (
                "Use a key of that namespace, or remove --namespace, HORAE_NAMESPACE or the header Horae-Namespace."
            )
            raise NotFound(f'No namespace "{name[:128]}" for this credential.', remedy)
        there = replace(principal, namespace=found, namespace_name=name)
        if len(self._elsewhere) >= MOST_CACHED:
            self._elsewhere.clear()
        self._elsewhere[principal.key, name] = (there, self._env.clock.monotonic() + CACHED)
        return there

    async def new_sign_in_code(self, principal: Principal = LOCAL) -> NewCode:
        """Create a code that signs one browser in, once, within ten minutes, with the rights of its maker.

        The sign-in ends with the maker's key, also if a browser made the code. Raises Forbidden for users with their
        own account, because all their sign-ins must end when they are locked out, and a sign-in by a code would not.
        """
        if principal.kind == "user":
            remedy = "Sign in on the other device with your name and password, or at your identity provider."
            raise Forbidden("Sign-in links are made with keys, not by users with their own account.", remedy)
        maker = await self._store.read(lambda: keys.by_id(principal.key)) if principal.csrf else None
        code, now = new_code(), self._env.now()
        until = now + CODE_LIFE
        grant = KeyRights(
            namespace=principal.namespace, role=principal.role, queues=principal.queues, jobs=principal.jobs,
            made_by=(maker and maker.grant.made_by) or principal.key or None,
            permissions=tuple(sorted(principal.permissions - _beyond(principal.namespace))),
        )  # fmt: skip
        await self._store.write(lambda: keys.add_code(digest_of(code), grant, until, now))
        return NewCode(code, until)

    async def sign_in(self, code: str) -> BrowserSignIn:
        """Exchange a code for a cookie."""
        (cookie, csrf), key_id, now = new_cookie(), new_key_id(), self._env.now()
        until, code_digest, cookie_digest = now + SIGNED_IN_FOR, digest_of(code), digest_of(cookie)
        key = await self._store.write(lambda: keys.sign_in(code_digest, key_id, cookie_digest, csrf, until, now))
        if key is None:
            raise Unauthorized(
                "This sign-in code is not valid: each works once, within ten minutes.",
                "Make a new link with `horae sign-in`, on the server's machine or with an administrator's key.",
            )
        return BrowserSignIn(cookie, key.expires_at or until, _principal(key, csrf))

    async def sign_out(self, cookie: str) -> None:
        """End a browser's cookie."""
        if self.users is not None and cookie.startswith(PERSONAL):
            return await self.users.sign_out(cookie)
        digest, now = digest_of(cookie), self._env.now()
        self._known.pop(("cookie", digest), None)
        return await self._store.write(lambda: keys.sign_out(digest, now))


def _principal(stored: StoredKey, csrf: str | None) -> Principal:
    grant = stored.grant
    return Principal(
        namespace=grant.namespace, namespace_name=grant.namespace_name, role=grant.role, key=stored.id,
        name=stored.name, permissions=effective_permissions(grant.role, grant.permissions), queues=grant.queues,
        jobs=grant.jobs,
        allowance=_allowance(stored, is_browser=csrf is not None), csrf=csrf,
    )  # fmt: skip


def _allowance(stored: StoredKey, is_browser: bool) -> RequestLimit | None:
    if stored.rate is None:
        return None
    rate = parse_rate(stored.rate, "rate")
    return RequestLimit(
        of=(stored.grant.made_by if is_browser else None) or stored.id, rate=replace(rate, burst=rate.count)
    )


def _beyond(namespace: int) -> frozenset[str]:
    """Return the permissions that a sign-in code of a namespace must not carry, because they reach other namespaces."""
    return frozenset() if namespace == DEFAULT_NAMESPACE else frozenset({"installation"})
