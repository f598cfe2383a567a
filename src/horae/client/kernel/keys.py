"""`client.keys`: API keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from horae.client.encode import given, instant, span
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.model.executions.job_exceptions import Span


class KeysResource(Resource):
    """API keys; the text of a new key is returned only once, as its `key`."""

    async def sign_in_link(self) -> ApiDocument:
        """Create a link that signs one browser in, once, with the permissions of this client's key.

        The answer has the `url` of the link and, as `expiresAt`, the end of its validity.
        """
        code = await self._caller.post(path_of("sign-in", "codes"))
        return ApiDocument.of({"url": f"{self._caller.place}/#code={code['code']}", "expiresAt": code["expiresAt"]})

    # `python -m tools.sdk` writes the methods below, from the routes of keys (revoke: delete).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[ApiDocument]:
        """List keys, including revoked and expired ones; their secrets are not stored."""
        return page_of(ApiDocument, await self._caller.get(path_of("keys"), {"limit": limit, "cursor": cursor}))

    async def create(
        self, name: str, role: Literal["viewer", "operator", "editor", "admin", "worker"], *,
        permissions: Sequence[Literal["commands", "sensitive", "installation"]] = (), queues: Sequence[str] = (),
        jobs: Sequence[str] = (), rate: str | None = None, expires_at: datetime | str | None = None,
    ) -> ApiDocument:  # fmt: skip
        """Create a key; the answer has its text, which is shown only once, even if the request is repeated.

        `role`: The role, which gives the key its permissions. `permissions`: Permissions in addition to the
        role's. `queues`: The only queues that the key is for; all by default. `jobs`: Patterns for the only jobs
        that the key is for, such as ["etl-*"]. `rate`: The rate limit for each server: "100/1s"; workers are
        exempt.
        """
        body = given(
            name=name, role=role, permissions=list(permissions) or None, queues=list(queues) or None,
            jobs=list(jobs) or None, rate=rate, expires_at=instant(expires_at),
        )  # fmt: skip
        return ApiDocument.of(await self._caller.post(path_of("keys"), body))

    async def rotate(self, key_id: str, *, overlap: Span | None = None) -> ApiDocument:
        """Create a key that replaces another key, with the same permissions and expiry.

        Both keys are valid until the overlap ends. The answer has the text of the new key, which is shown only
        once, even if the request is repeated.

        `overlap`: The time for which the old key stays valid, up to 90d; 0 ends it at once; 1d by default.
        """
        return ApiDocument.of(await self._caller.post(path_of("keys", key_id, "rotate"), given(overlap=span(overlap))))

    async def delete(self, key_id: str, *, force: bool = False) -> None:
        """Revoke a key. The key, and browsers signed in with it, lose access to all servers within five seconds.

        `force`: Revoke even the last key that administers the installation.
        """
        await self._caller.delete(path_of("keys", key_id), {"force": force or None})
