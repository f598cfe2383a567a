"""Idempotency keys: a repeated request gets the answer of the first one and is not executed again.

The key is reserved before the request runs, and its answer is stored afterwards. If the server dies in between, the
reservation expires. Submissions are not handled here: the submitter stores their keys in its own transaction.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from horae.env import SECOND, Env, Micros
from horae.errors import Conflict, KeyReused, StoreUnavailable
from horae.model.executions.submission import Idempotency
from horae.store.contract import Store
from horae.store.tenancy import keys

RUNNING_FOR: Micros = 60 * SECOND  # after this time, a request or its server has ended
T = TypeVar("T")


class StoredAnswer(Struct, frozen=True):
    """An answer as it is stored."""

    status: int
    content: bytes


class IdempotentRequests:
    """Runs a request only once, even if it is sent repeatedly."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def once(
        self, key: Idempotency, run: Callable[[], Awaitable[T]], to_stored: Callable[[T], StoredAnswer]
    ) -> T | StoredAnswer:
        """Run a request, or return the stored answer of its first run.

        `to_stored` makes the answer to store from the result of `run`.

        Raises KeyReused when the key was used for another request, and Conflict while the first run has not ended.
        """
        now = self._env.now()
        found = await self._store.write(lambda: keys.reserve(key, now + RUNNING_FOR, now))
        if isinstance(found, keys.KnownKey):
            return _first_answer(found)
        try:
            done = await run()
        except BaseException:
            with suppress(StoreUnavailable):  # then the reservation expires
                await self._store.write(lambda: keys.release(key, found))
            raise
        answer = to_stored(done)
        with suppress(StoreUnavailable):  # the request is done; a late repetition meets the route's own checks
            await self._store.write(lambda: keys.store_answer(key, found, answer.status, answer.content))
        return done


def _first_answer(known: keys.KnownKey) -> StoredAnswer:
    if not known.same_body:
        raise KeyReused(
            "This Idempotency-Key was used with another request before.", "Use a new key for a new request."
        )
    if known.status is None or known.answer is None:
        raise Conflict("The same request is under way.", "Wait for its answer, then repeat it.", retryAfter=1)
    return StoredAnswer(known.status, known.answer)
