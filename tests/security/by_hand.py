"""A worker that uses the API directly, one exchange at a time."""

from typing import Any

from horae.model.fleet.protocol import PROTOCOL
from tests.security.people import Api


class WorkerByHand:
    """A worker that registers with its first exchange."""

    def __init__(self, api: Api) -> None:
        self.api, self._n, self.session = api, 0, ""

    async def exchange(self, **said: Any) -> dict[str, Any]:
        """Send an exchange and return the answer."""
        if not self.session:
            presence = {"protocol": PROTOCOL, "worker": "w", "queues": ["default"], "concurrency": 9}
            made = await self.api.post("/api/v1/sessions", json={**presence, "kinds": ["command"]})
            assert made.status_code == 201, made.text
            self.session = made.json()["sessionId"]
        self._n += 1
        body = {"channel": 0, "n": self._n, "free": 9, **said}
        answer = await self.api.post(f"/api/v1/sessions/{self.session}/exchange", json=body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told
