"""Sign-in: a session is opened for a browser by a password or by an identity provider.

A session ends after a time without requests, and in any case after some days. Its cookie is `u_` with 256 random bits,
and the store has only a hash of it. Each server caches sessions for `CACHED` seconds, so that a change of a user takes
effect within this time.
"""

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from horae.engine.base.tokens import digest_of, new_cookie
from horae.engine.tenancy.keys import CACHED, MOST_CACHED, NOTED_EVERY, PERSONAL, BrowserSignIn
from horae.engine.tenancy.throttle import Throttle, Trickle, network_of
from horae.env import Env, Instant, Micros
from horae.errors import Forbidden, NotFound, StoreUnavailable, TooOften, Unauthorized
from horae.features.users.engine.passwords import Passwords
from horae.features.users.model import LONGEST, Member, User, home_of, principal_of
from horae.features.users.store import users as user_rows
from horae.model.tenancy.principal import Principal
from horae.store.admission import quotas
from horae.store.contract import Store

# How many wrong guesses are possible without a wait: for a name from one network, and from one address.
FREE_OF_PLACE, FREE_OF_ADDRESS = 5, 20
# The same for a name from all networks together, and the seconds between further guesses.
FREE_OF_NAME, PACE_OF_NAME = 100, 60.0
NETWORK = 24  # IPv4 addresses that agree in this many bits count as one network
MOST_NETWORKS = 10_000  # the most networks of successful sign-ins that a server remembers


class BrowserSession(Struct):
    """A cached session."""

    who: Principal
    ends_at: Instant  # the end of the session
    cached_until: float  # the end of this cache entry (monotonic)


class SignIns:
    """Opens, checks and ends sessions of browsers.

    `idle` is how long a session lasts without requests, `life` how long it lasts at most.
    """

    def __init__(self, env: Env, store: Store, passwords: Passwords, idle: Micros, life: Micros) -> None:
        self._env, self._store, self.passwords = env, store, passwords
        self._idle, self._life = idle, life
        self._places, self._addresses = Throttle(env, FREE_OF_PLACE), Throttle(env, FREE_OF_ADDRESS)
        self._names = Trickle(env, FREE_OF_NAME, PACE_OF_NAME)
        self._networks: dict[tuple[str, str], None] = {}  # (user, network) of successful sign-ins, the latest last
        self._known: dict[bytes, BrowserSession] = {}
        self._members: dict[str, tuple[Member, ...]] = {}  # the memberships of cached sessions, by CSRF token

    async def with_password(self, name: str, password: str, address: str) -> BrowserSignIn:
        """Open a session if the password is right. Raises Unauthorized, or TooOften after too many wrong guesses."""
        found = await self.authenticate(name, password, address)
        if found is None:
            remedy = "Try again, or ask an administrator for a new password."
            raise Unauthorized("The name or the password is wrong.", remedy)
        user, known = found
        signed = await self.open(name, known, user.members, None, network_of(address, NETWORK))
        if self.passwords.is_old(known):
            kept = await self.passwords.hash(password)
            await self._store.write(lambda: user_rows.replace_hash(name, kept, known))
        return signed

    async def authenticate(self, name: str, password: str, address: str) -> tuple[User, str] | None:
        """Return the active user with a name and the password's hash if the password is right, else None.

        Raises TooOften after too many wrong guesses. These are counted by name and network, so that guesses from one
        network do not lock out the user in another. Guesses from all networks together are limited to a slow pace. This
        limit does not apply to networks from which the user has signed in before.
        """
        where, network = network_of(address), network_of(address, NETWORK)
        place = f"{network} {name}"
        is_known = self._names.wait(name) > 0 and await self._has_signed_in_from(name, network)
        # Nothing is awaited between this check and the count, so that concurrent guesses cannot all pass the check.
        wait = max(self._places.wait(place), self._addresses.wait(where), 0 if is_known else self._names.wait(name))
        if wait:
            raise TooOften("Too many wrong passwords.", f"Try again in {wait:.0f} seconds.", retryAfter=int(wait) + 1)
        self._places.guess(place)
        self._names.guess(name)
        self._addresses.guess(where)
        found = await self._store.read(lambda: user_rows.find(name))
        known = found[1] if found else None
        is_right = len(password) <= LONGEST and await self.passwords.matches(known, password)
        if found is None or known is None or not is_right or not found[0].is_active:
            return None
        self._places.reset(place)
        self._names.take_back(name)
        self._addresses.take_back(where)
        self._networks.pop((name, network), None)
        self._networks[name, network] = None
        if len(self._networks) > MOST_NETWORKS:
            del self._networks[next(iter(self._networks))]
        return found[0], known

    async def _has_signed_in_from(self, name: str, network: str) -> bool:
        """Return whether a user has signed in from a network before.

        Sign-ins on other servers count only while their session is open.
        """
        now = self._env.now()
        if (name, network) in self._networks:
            return True
        return await self._store.read(lambda: user_rows.is_signed_in_from(name, network, now))

    async def open(
        self,
        name: str,
        proof: str,
        members: tuple[Member, ...],
        provider_members: tuple[Member, ...] | None,
        network: str | None = None,
    ) -> BrowserSignIn:
        """Open a session for an authenticated user. Raises Unauthorized if the user has changed meanwhile.

        `proof` is the hash of the password, or the user's id at the identity provider. `provider_members` has the
        memberships that an identity provider determined; None for a user with a password.
        """
        home = home_of(members)
        if home is None:
            remedy = (
                f"Ask an administrator to run: horae users grant {name} --role viewer"
                if provider_members is None
                else "Ask an administrator to give a role to one of your groups, with the setting oidc_roles."
            )
            raise Forbidden(f'The user "{name}" has no role in any namespace.', remedy)
        cookie, csrf = new_cookie()
        text, now = PERSONAL + cookie, self._env.now()
        until = now + self._life
        if not await self._store.write(
            lambda: user_rows.sign_in(digest_of(text), name, proof, csrf, until, now, provider_members, network)
        ):
            raise Unauthorized(f'The user "{name}" was changed during the sign-in.', "Sign in again.")
        return BrowserSignIn(text, until, principal_of(name, home, csrf))

    async def check(self, text: str) -> Principal | None:
        """Return the principal of a cookie, or None if there is no open session for it."""
        digest = digest_of(text)
        known = self._known.get(digest)
        if known is None or known.cached_until <= self._env.clock.monotonic():
            known = await self._load(digest)
        return known.who if known is not None and self._env.now() < known.ends_at else None

    async def _load(self, digest: bytes) -> BrowserSession | None:
        now = self._env.now()
        found = await self._store.read(lambda: user_rows.signed_in(digest))
        home = None if found is None else home_of(found.members)
        if found is None or home is None or now >= min(found.until, found.seen_at + self._idle):
            self._drop(digest)
            return None
        who = principal_of(found.user, home, found.csrf)
        known = BrowserSession(who, found.until, self._env.clock.monotonic() + CACHED)
        self._drop(digest)
        if len(self._known) >= MOST_CACHED:
            self._drop(next(iter(self._known)))
        self._known[digest], self._members[found.csrf] = known, found.members
        noted_before = now - min(NOTED_EVERY, self._idle // 4)
        if found.seen_at <= noted_before:
            with suppress(StoreUnavailable):  # so that users can still read while the store cannot be written
                await self._store.write(lambda: user_rows.mark_seen(digest, now, noted_before))
        return known

    def _drop(self, digest: bytes) -> None:
        """Remove a session from the cache."""
        known = self._known.pop(digest, None)
        if known is not None:
            self._members.pop(known.who.csrf or "", None)

    async def in_namespace(self, who: Principal, name: str) -> Principal:
        """Return the principal of the same user in another namespace of the user. Raises NotFound."""
        members = self._members.get(who.csrf or "", ())
        member = next((member for member in members if member.namespace_name == name), None)
        if member is not None:
            return principal_of(who.name, member, who.csrf or "")
        found = await self._store.read(lambda: quotas.namespace_named(name)) if who.may("installation") else None
        if found is None:
            detail = f'There is no namespace "{name[:128]}", or you have no role in it.'
            raise NotFound(detail, "Choose one of the namespaces in GET /api/v1/me.")
        return replace(who, namespace=found, namespace_name=name)

    def namespaces(self, who: Principal) -> tuple[str, ...]:
        """Return the names of a user's namespaces, or nothing if no session of the user is cached."""
        return tuple(member.namespace_name for member in self._members.get(who.csrf or "", ()))

    async def sign_out(self, text: str) -> None:
        """End a session."""
        digest = digest_of(text)
        self._drop(digest)
        await self._store.write(lambda: user_rows.end(digest))

    def forget(self) -> None:
        """Let the next request of each session read the store again, because a user was changed."""
        for known in self._known.values():
            known.cached_until = 0.0
