"""Enrolment: an administrator creates a token, and a worker exchanges it, once, for its own key.

So no key passes through the tools that start machines. A token is worthless after its first use.
"""

from collections.abc import Sequence

from msgspec import Struct

from horae.engine.base.tokens import digest_of, new_enrolment_token, new_key_text
from horae.engine.tenancy.keys import NewKey
from horae.env import Env, Instant, Micros
from horae.errors import BadInput, Unauthorized
from horae.model.base.duration import DAY
from horae.model.tenancy.keys import KeyRights
from horae.model.tenancy.principal import Principal
from horae.store.contract import Store
from horae.store.tenancy import enrolments

LONGEST: Micros = 30 * DAY


class NewEnrolment(Struct, frozen=True):
    """A token that was just created. Its text is shown only now."""

    text: str
    until: Instant


class Enrolments:
    """Creates tokens and exchanges them for keys."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def create(self, principal: Principal, queues: Sequence[str], span: Micros) -> NewEnrolment:
        """Create a token for one worker of the caller's namespace.

        It may serve these queues, or all if none is given.
        """
        if not 0 < span <= LONGEST:
            raise BadInput("An enrolment lasts up to 30 days.", "Give a shorter expiresIn.", field="expiresIn")
        text, now = new_enrolment_token(), self._env.now()
        grant = KeyRights(
            namespace=principal.namespace, role="worker", queues=tuple(queues), made_by=principal.key or None
        )
        await self._store.write(lambda: enrolments.add_enrolment(digest_of(text), grant, now + span, now))
        return NewEnrolment(text, now + span)

    async def redeem(self, token: str, name: str) -> NewKey:
        """Exchange a token for a worker's key."""
        key_id, text = new_key_text()
        now = self._env.now()
        stored = await self._store.write(
            lambda: enrolments.use(digest_of(token), key_id, digest_of(text), f"worker {name}", now)
        )
        if stored is None:
            raise Unauthorized(
                "This enrolment token is not valid: each works once and expires.",
                "Make a new one with `horae workers enrol`, with an administrator's key.",
            )
        return NewKey(stored, text)
