"""`client.secrets`, which jobs refer to and whose values cannot be read back, and `client.master_key`."""

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of


class SecretInfo(ApiDocument, frozen=True, kw_only=True):
    """A secret without its value; `jobs` lists the jobs that refer to it."""

    name: str
    version: int
    created_at: str
    updated_at: str
    jobs: tuple[str, ...] | None = None


class SecretsResource(Resource):
    """The secrets of the namespace."""

    # `python -m tools.sdk` writes the methods below, from the routes of secrets (put: set).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[SecretInfo]:
        """List secrets, sorted by name, without their values."""
        return page_of(SecretInfo, await self._caller.get(path_of("secrets"), {"limit": limit, "cursor": cursor}))

    async def get(self, name: str) -> SecretInfo:
        """Read the properties of a secret, and the jobs that refer to it."""
        return SecretInfo.of(await self._caller.get(path_of("secrets", name)))

    async def set(self, name: str, value: str) -> SecretInfo:
        """Set a secret's value for executions that start from now on.

        `value`: The value is stored encrypted, sent only with executions that need it, never shown.
        """
        return SecretInfo.of(await self._caller.edit("PUT", path_of("secrets", name), given(value=value)))

    async def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a secret to which no job refers.

        `force`: Delete the secret even if jobs refer to it; their executions then fail.
        """
        await self._caller.delete(path_of("secrets", name), {"force": force or None})


class MasterKeyResource(Resource):
    """The key that encrypts the secrets of all namespaces."""

    # `python -m tools.sdk` writes the methods below, from the routes of master-key.

    async def rotate(self) -> ApiDocument:
        """Encrypt all secrets of all namespaces with the first master key, so that other keys can be removed."""
        return ApiDocument.of(await self._caller.post(path_of("master-key", "rotation")))
