"""Secrets of namespaces: set, list, delete and reseal. Values leave the server only with grants to workers."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

import msgspec
import structlog
from msgspec import Struct

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.base.sealing import Sealer
from horae.env import Env
from horae.errors import BadInput, Conflict, HoraeError, MasterKeyMissing, NotFound
from horae.feature import installed, load
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.redaction import LEAST
from horae.model.base.view import Page
from horae.model.definitions.job import Spec
from horae.model.tenancy.secret_refs import MOST_VALUE, check_secret_name, is_stored
from horae.model.tenancy.secret_view import SecretView
from horae.store.contract import Store
from horae.store.tenancy import secrets
from horae.store.tenancy.secrets import SealedSecret

CACHED = 2.0  # seconds for which an opened value is cached, so that many grants need one read
MOST_CACHED = 1000
MOST_CHECKED = 1000  # values that a check opens
MOST_NAMED = 20  # jobs that a refusal names
MOST_COMPARED = 1000  # names that are compared to suggest a similar one
log = structlog.get_logger("horae.engine")


RefuseDeletion = Callable[[Store, int, str], Awaitable[None]]  # raises Conflict while a feature refers to a secret


class GrantedSecrets(Struct, frozen=True):
    """The secrets of a grant: values by name, and for each missing secret the reason."""

    values: dict[str, str]
    problems: dict[str, str]


NOTHING = GrantedSecrets({}, {})


class Secrets:
    """Operations on secrets, by their names."""

    def __init__(self, env: Env, store: Store, sealer: Sealer) -> None:
        self._env, self._store, self._sealer = env, store, sealer
        self._refusals: list[RefuseDeletion] = [load(feature.secrets) for feature in installed() if feature.secrets]
        self._opened: dict[tuple[int, str], tuple[float, str]] = {}

    async def put(self, namespace: int, name: str, value: str) -> tuple[SecretView, bool]:
        """Set a secret's value; return the secret and whether it is new. Raises BadInput, MasterKeyMissing."""
        check_secret_name(name)
        sealed = self._sealer.seal(check_value(value).encode(), _place(namespace, name))
        stored = await self._store.write(lambda: secrets.put(namespace, name, sealed, self._env.now()))
        self._opened.pop((namespace, name), None)
        return _show(stored), stored.version == 1

    async def get(self, namespace: int, name: str) -> SecretView:
        """Return a secret with the jobs that refer to it. Raises NotFound."""
        found = await self._store.read(lambda: secrets.by_names(namespace, [name]))
        if name not in found:
            raise await _none(self._store, namespace, name)
        return _show(found[name], await self._users(namespace, name))

    async def list(self, namespace: int, *, limit: int = 50, cursor: str | None = None) -> Page[SecretView]:
        """Return a page of secrets, sorted by name."""
        after, most = "" if cursor is None else read_cursor(cursor, str), check_limit(limit)
        found = await self._store.read(lambda: secrets.page(namespace, after, most + 1))
        more = make_cursor(found[most - 1].name) if len(found) > most else None
        return Page(items=[_show(secret) for secret in found[:most]], next_cursor=more)

    async def delete(self, namespace: int, name: str, *, force: bool = False) -> None:
        """Delete a secret. Raises NotFound, and Conflict while something refers to it, unless `force` is true."""
        users = [] if force else await self._users(namespace, name)
        if users:
            jobs = ", ".join(f'"{job}"' for job in users[:MOST_NAMED])
            remedy = f"Change these jobs first, or let their executions fail: `horae secrets delete {name} --force`."
            raise Conflict(f'Jobs refer to the secret "{name}": {jobs}.', remedy, jobs=users[:MOST_NAMED])
        for refuse in () if force else self._refusals:
            await refuse(self._store, namespace, name)
        removed = await self._store.write(lambda: secrets.delete(namespace, name))
        self._opened.pop((namespace, name), None)
        if not removed:
            raise await _none(self._store, namespace, name)

    async def reseal(self) -> tuple[int, int]:
        """Seal all secrets with the first master key. Return how many were sealed anew and how many were current."""
        resealed = current = 0
        at = (0, "")
        while rows := await self._store.read(lambda at=at: secrets.all_after(*at)):  # type: ignore[misc]
            for namespace, name, sealed in rows:
                at = (namespace, name)
                if self._sealer.is_current(sealed):
                    current += 1
                else:
                    resealed += await self._seal_anew(namespace, name, sealed)
        return resealed, current

    async def count_readable(self) -> tuple[int, int]:
        """Count the secrets that open with the master keys, and those that do not. Check only a limited number."""
        opened = checked = 0
        at = (0, "")
        while checked < MOST_CHECKED and (rows := await self._store.read(lambda at=at: secrets.all_after(*at))):  # type: ignore[misc]
            for namespace, name, sealed in rows:
                at = (namespace, name)
                checked += 1
                with suppress(MasterKeyMissing):
                    self._sealer.open(sealed, _place(namespace, name))
                    opened += 1
        return opened, checked - opened

    async def _seal_anew(self, namespace: int, name: str, sealed: bytes) -> bool:
        """Seal a secret anew, unless it was set meanwhile.

        Another server may have set it with an old key; the next rotation seals it anew.
        """
        try:
            anew = self._sealer.reseal(sealed, _place(namespace, name))
        except MasterKeyMissing as error:
            raise MasterKeyMissing(f'The secret "{name}" is left as it is. {error.detail}', error.remedy) from None
        return await self._store.write(lambda: secrets.reseal(namespace, name, sealed, anew))

    async def grant(self, namespace: int, names: Sequence[str]) -> GrantedSecrets:
        """Return values for a grant, with the problems of missing ones, so that no execution starts without them."""
        values, problems, missing = {}, {}, []
        now = self._env.clock.monotonic()
        for name in names:
            until, value = self._opened.get((namespace, name), (0.0, ""))
            if until > now:
                values[name] = value
            else:
                missing.append(name)
        found = await self._store.read(lambda: secrets.by_names(namespace, missing)) if missing else {}
        for name in missing:
            try:
                values[name] = self._open(namespace, name, found, now)
            except HoraeError as error:
                problems[name] = str(error)
                log.warning("a secret cannot be granted", secret=name, error=str(error))
        return GrantedSecrets(values, problems)

    def _open(self, namespace: int, name: str, found: dict[str, SealedSecret], now: float) -> str:
        if name not in found:
            raise NotFound(f'There is no secret "{name}".', f"Set it: `horae secrets set {name}`.")
        value = self._sealer.open(found[name].sealed, _place(namespace, name)).decode()
        if len(self._opened) >= MOST_CACHED:
            self._opened.clear()
        self._opened[namespace, name] = (now + CACHED, value)
        return value

    async def _users(self, namespace: int, name: str) -> "list_of[str]":
        """Return the jobs that refer to a secret now, in their definition or to verify their webhooks."""
        found = await self._store.read(lambda: secrets.mentions(namespace, name))
        named = [job for job, spec in found if name in msgspec.json.decode(spec, type=Spec).references]
        return sorted({*named, *await self._store.read(lambda: secrets.verifies(namespace, name))})


list_of = list  # inside the class, `list` is its method


async def check_secrets(store: Store, namespace: int, references: Collection[str]) -> None:
    """Refuse references to missing secrets. Secrets that workers provide are unknown here. Raises BadInput."""
    wanted = sorted(filter(is_stored, references))
    found = await store.read(lambda: secrets.by_names(namespace, wanted)) if wanted else {}
    for name in wanted:
        if name not in found:
            none = await _none(store, namespace, name)
            raise BadInput(f"A referenced secret is missing. {none.detail}", none.remedy, field="secrets")


async def _none(store: Store, namespace: int, name: str) -> NotFound:
    known = [secret.name for secret in await store.read(lambda: secrets.page(namespace, "", MOST_COMPARED))]
    near, shown = nearest(name, known), name[:128]
    meant = f"Did you mean {in_quotes(near)}? " if near else ""
    return NotFound(f'There is no secret "{shown}".', f"{meant}Set it: `horae secrets set {shown}`.")


def check_value(value: str) -> str:
    """Refuse values that cannot be masked in logs or passed to a program. Never show any part of a value."""
    if len(value.strip()) < LEAST:
        remedy = f"Use at least {LEAST} characters: a shorter value would be masked wherever it occurs by chance."
        raise BadInput("The value is too short to be kept out of logs.", remedy, field="value")
    if len(value) > MOST_VALUE:
        raise BadInput("The value is too long.", f"At most {MOST_VALUE} characters are allowed.", field="value")
    if "\0" in value or value.encode(errors="replace") != value.encode(errors="surrogatepass"):
        raise BadInput("The value is not a text.", "Encode it, for example as base64.", field="value")
    return value


def _place(namespace: int, name: str) -> bytes:
    return f"secrets/{namespace}/{name}".encode()


def _show(secret: SealedSecret, jobs: list[str] | None = None) -> SecretView:
    return SecretView(
        name=secret.name, version=secret.version, created_at=format_instant(secret.created_at),
        updated_at=format_instant(secret.updated_at), jobs=jobs,
    )  # fmt: skip
