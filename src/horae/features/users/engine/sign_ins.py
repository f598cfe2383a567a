"""Sign-in: a password or an identity provider opens a session for a browser.

A session ends after a time without requests, and in any case after some days. Its cookie is `u_` and 256 random bits;
the store has only a hash. A change of a user takes effect within `CACHED` seconds on every server.
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

FREE_OF_PLACE, FREE_OF_ADDRESS = 5, 20  # wrong guesses without a wait: for a name from one network; from an address
FREE_OF_NAME, PACE_OF_NAME = 100, 60.0  # wrong guesses without a wait for a name; the seconds between further ones
NETWORK = 24  # bits of an IPv4 address that make a network
MOST_NETWORKS = 10_000  # remembered networks of successful sign-ins


class BrowserSession(Struct, frozen=True):
    """A cached session."""

    who: Principal
    ends_at: Instant
    until: float  # the expiry of the cache entry (monotonic)


class SignIns:
    """The sessions of browsers: open, check and end them."""

    def __init__(self, env: Env, store: Store, passwords: Passwords, idle: Micros, life: Micros) -> None:
        self._env, self._store, self.passwords = env, store, passwords
        self._idle, self._life = idle, life
        self._places, self._addresses = Throttle(env, FREE_OF_PLACE), Throttle(env, FREE_OF_ADDRESS)
        self._names = Trickle(env, FREE_OF_NAME, PACE_OF_NAME)
        self._networks: dict[tuple[str, str], None] = {}  # users with networks of their sign-ins, the latest last
        self._known: dict[bytes, BrowserSession] = {}
        self._members: dict[str, tuple[Member, ...]] = {}  # the members of cached sessions, by CSRF token

    async def with_password(self, name: str, password: str, address: str) -> BrowserSignIn:
        """Open a session if the password is right. Guesses are slowed down. Raises Unauthorized, TooOften."""
        found = await self.authenticate(name, password, address)
        if found is None:
            raise Unauthorized("The name or the password is wrong.", "Try again, or ask an administrator for another.")
        if found[1] is not None and self.passwords.is_old(found[1]):
            kept = await self.passwords.hash(password)
            await self._store.write(lambda: user_rows.replace_hash(name, kept))
        return await self.open(name, found[0].members, None, network_of(address, NETWORK))

    async def authenticate(self, name: str, password: str, address: str) -> tuple[User, str | None] | None:
        """Return the active user of this name with the hash if the password is right, otherwise None. Raises TooOften.

        Guesses are counted by name and network, so that guesses from one network do not lock out the user in another.
        Guesses from all networks together are limited to a slow pace; it does not apply to networks from which the
        user has signed in before.
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
        is_right = len(password) <= LONGEST and await self.passwords.matches(found[1] if found else None, password)
        if found is None or not is_right or not found[0].is_active:
            return None
        self._places.reset(place)
        self._names.take_back(name)
        self._addresses.take_back(where)
        self._networks.pop((name, network), None)
        self._networks[name, network] = None
        if len(self._networks) > MOST_NETWORKS:
            del self._networks[next(iter(self._networks))]
        return found

    async def _has_signed_in_from(self, name: str, network: str) -> bool:
        """Return whether a user signed in from a network before: on this server, or anywhere if the session is open."""
        now = self._env.now()
        if (name, network) in self._networks:
            return True
        return await self._store.read(lambda: user_rows.is_signed_in_from(name, network, now))

    async def open(
        self, name: str, members: tuple[Member, ...], said: tuple[Member, ...] | None, network: str | None = None
    ) -> BrowserSignIn:
        """Open a session for an authenticated user; `said` are the memberships from an identity provider, if any."""
        home = home_of(members)
        if home is None:
            raise Forbidden(
                f'"{name}" may not use anything yet.',
                f"Let an administrator run: horae users grant {name} --role viewer",
            )
        cookie, csrf = new_cookie()
        text, now = PERSONAL + cookie, self._env.now()
        until = now + self._life
        await self._store.write(lambda: user_rows.sign_in(digest_of(text), name, csrf, until, now, said, network))
        return BrowserSignIn(text, until, principal_of(name, home, csrf))

    async def check(self, text: str) -> Principal | None:
        """Return the principal of a cookie, or None if there is no open session for it."""
        digest = digest_of(text)
        known = self._known.get(digest)
        if known is None or known.until <= self._env.clock.monotonic():
            known = await self._load(digest)
        return known.who if known is not None and self._env.now() < known.ends_at else None

    async def _load(self, digest: bytes) -> BrowserSession | None:
        now = self._env.now()
        found = await self._store.read(lambda: user_rows.signed_in(digest))
        home = None if found is None else home_of(found.members)
        if found is None or home is None or now >= min(found.until, found.seen_at + self._idle):
            self._known.pop(digest, None)
            return None
        who = principal_of(found.user, home, found.csrf)
        known = BrowserSession(who, found.until, self._env.clock.monotonic() + CACHED)
        if len(self._known) >= MOST_CACHED:
            self.forget()
        self._known[digest], self._members[found.csrf] = known, found.members
        if found.seen_at <= now - NOTED_EVERY:
            with suppress(StoreUnavailable):  # a read-only store still admits users
                await self._store.write(lambda: user_rows.mark_seen(digest, now, now - NOTED_EVERY))
        return known

    async def in_namespace(self, who: Principal, name: str) -> Principal:
        """Return the principal of the same user in another of their namespaces. Raises NotFound."""
        members = self._members.get(who.csrf or "", ())
        member = next((member for member in members if member.namespace_name == name), None)
        if member is not None:
            return principal_of(who.name, member, who.csrf or "")
        found = await self._store.read(lambda: quotas.namespace_named(name)) if who.may("installation") else None
        if found is None:
            raise NotFound(f'No namespace "{name[:128]}" for you.', "Choose one of those that GET /api/v1/me names.")
        return replace(who, namespace=found, namespace_name=name)

    def namespaces(self, who: Principal) -> tuple[str, ...]:
        """Return the namespaces of a user whose session is cached."""
        return tuple(member.namespace_name for member in self._members.get(who.csrf or "", ()))

    async def sign_out(self, text: str) -> None:
        """End a session."""
        digest = digest_of(text)
        self._known.pop(digest, None)
        await self._store.write(lambda: user_rows.end(digest))

    def forget(self) -> None:
        """Clear the cache of sessions, after a change of a user."""
        self._known.clear()
        self._members.clear()
