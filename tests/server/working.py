"""A worker for tests: it registers, takes the available work, and reports outcomes."""

from collections.abc import Sequence
from typing import Any

import httpx2
import msgspec

from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Failure, Grant, Outcome, Registered
from tests.server.conftest import Api


class HandWorker:
    """Speaks the worker protocol, one exchange after another."""

    def __init__(self, api: Api, session: Registered) -> None:
        self._api, self.session, self._n = api, session.session_id, 0

    @classmethod
    async def register(cls, api: Api, **more: Any) -> "HandWorker":
        body = {"protocol": PROTOCOL, "worker": "w1", "concurrency": 2, **more}
        answer = await api.post("/api/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return cls(api, msgspec.json.decode(answer.content, type=Registered))

    async def send(self, **more: Any) -> httpx2.Response:
        """Send one exchange and return any answer."""
        self._n += 1
        body = msgspec.json.encode(Exchange(channel=0, n=self._n, **more))
        return await self._api.post(f"/api/v1/sessions/{self.session}/exchange", content=body)

    def repeat(self) -> None:
        """Give the next exchange the number of the last one, as if that had not been answered."""
        self._n -= 1

    async def exchange(self, **more: Any) -> Answer:
        """Send one exchange, answered at once."""
        answer = await self.send(**more)
        assert answer.status_code == 200, answer.text
        return msgspec.json.decode(answer.content, type=Answer)

    async def take(self, free: int = 2) -> list[Grant]:
        return (await self.exchange(free=free)).slices

    async def report(self, grants: Sequence[Grant], *, error: Failure | None = None) -> Answer:
        """Report that all of these succeeded, or failed with this error."""
        return await self.exchange(outcomes=[outcome(grant, error) for grant in grants])


def outcome(grant: Grant, error: Failure | None = None) -> Outcome:
    """Return the outcome of a whole grant."""
    return Outcome(
        parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, error=error,
        outcome="success" if error is None else "failed",
    )  # fmt: skip
