"""Operations on channels: write, read, delete, read with secrets for a delivery, and seal with another master key."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.base.sealing import Sealer
from horae.engine.base.tokens import new_hook_secret
from horae.engine.tenancy.secrets import MOST_CHECKED, Secrets
from horae.env import Env, Instant
from horae.errors import BadInput, Conflict, MasterKeyMissing, NotFound, Stale
from horae.features.alerts.engine.chats import apprise
from horae.features.alerts.model.channel import AnyChannel, Apprise, Webhook, fill_secrets, read_channel
from horae.features.alerts.model.view import ChannelView
from horae.features.alerts.store import notices as alert_notices
from horae.features.alerts.store import rules as moves
from horae.features.alerts.store.rules import StoredChannel
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.view import Page
from horae.model.base.webhook_signature import check_secret
from horae.model.fields.values import NAME, a_name, an_object
from horae.model.tenancy.secret_refs import SCHEME
from horae.outbound.threads import APPRISE_THREADS, run_in
from horae.store.contract import Store
from horae.store.script import Script

MOST_NAMED = 20  # names of rules or channels in an error message
MOST_CHANNELS = 200  # channels of a namespace


class AlertChannels:
    """The operations on channels."""

    def __init__(self, env: Env, store: Store, sealer: Sealer, secrets: Secrets) -> None:
        self._env, self._store, self._sealer, self._secrets = env, store, sealer, secrets

    async def create(self, namespace: int, body: Any) -> ChannelView:
        """Create a channel. A webhook without a secret gets a new one, which only this answer shows."""
        given = an_object(body, "body", 'Send {"name": "ops", "kind": "webhook", "url": "https://..."}.')
        if "name" not in given:
            raise BadInput("A channel needs a name.", 'Add "name": "ops".', field="name")
        view, _ = await self.put(namespace, given["name"], body, new=True)
        return view

    async def put(
        self, namespace: int, name: str, body: Any, *, if_match: int | None = None, new: bool = False
    ) -> tuple[ChannelView, bool]:
        """Create or replace the channel of this name; return it, and whether it is new.

        Raises BadInput, Conflict, Stale, and MasterKeyMissing if the server has no master key to seal its secrets.
        """
        name = a_name(name, "name", NAME)
        given = an_object(body, "body", "Send the kind and the receivers of the channel.")
        if given.get("name", name) != name:
            raise BadInput("The name in the body is not the name in the path.", "Send the same name.", field="name")
        stored = (await self._store.read(lambda: moves.channels(namespace, [name]))).get(name)
        if stored is not None and new:
            raise _exists(name)
        before = None if stored is None else self._whole(stored)
        channel = read_channel(body, before)
        made = None
        if isinstance(channel, Webhook) and channel.secret is None:
            made = new_hook_secret()
            channel = msgspec.structs.replace(channel, secret=made)
        if isinstance(channel, Apprise):
            await run_in(APPRISE_THREADS, apprise)
        await self._check(namespace, channel)
        sealed = self._sealer.seal(moves.sealed_part(channel), _seal_context(namespace, name))
        revision = None if stored is None else stored.revision
        kept = await self._store.change(
            lambda now: _put(namespace, name, channel, sealed, if_match, revision, now, new=new)
        )
        return _shown(kept, made), stored is None

    async def get(self, namespace: int, name: str) -> ChannelView:
        """Return a channel. Raises NotFound."""
        return _shown(await self._stored(namespace, name))

    async def list(self, namespace: int, *, limit: int = 50, cursor: str | None = None) -> Page[ChannelView]:
        """Return a page of channels, ordered by name."""
        after, most = "" if cursor is None else read_cursor(cursor, str), check_limit(limit)
        found = await self._store.read(lambda: moves.channel_page(namespace, after, most + 1))
        more = make_cursor(found[most - 1].name) if len(found) > most else None
        return Page(items=[_shown(one) for one in found[:most]], next_cursor=more)

    async def delete(self, namespace: int, name: str) -> None:
        """Delete a channel, and give up its pending notices. Raises NotFound, and Conflict if a rule uses it."""
        await self._stored(namespace, name)

        def script(now: Instant) -> Script[list_of[str]]:
            yield from moves.lock(namespace)
            users = list((yield from moves.rules_naming(namespace, name)))
            if not users:
                yield from moves.delete_channel(namespace, name)
                yield from alert_notices.give_up(namespace, name, "the channel was removed", now)
            return users

        users = await self._store.change(script)
        if users:
            names = ", ".join(f'"{rule}"' for rule in users[:MOST_NAMED])
            raise Conflict(f'Rules use the channel "{name}": {names}.', "Change these rules first.", rules=users[:20])

    async def opened(self, namespace: int, name: str) -> AnyChannel:
        """Return a channel for a delivery, with the values of the secrets to which it refers.

        Raises NotFound, and MasterKeyMissing if it cannot be opened.
        """
        channel = self._whole(await self._stored(namespace, name))
        return fill_secrets(channel, await self._values(namespace, channel))

    async def count_readable(self) -> tuple[int, int]:
        """Count the channels that this server can open with its master keys, and those that it cannot.

        After MOST_CHECKED channels the count stops.
        """
        opened = looked = 0
        after = (0, "")
        while looked < MOST_CHECKED and (
            page := await self._store.read(lambda after=after: moves.all_channels(after))  # type: ignore[misc]
        ):
            for one in page:
                after = (one.namespace, one.name)
                looked += 1
                with suppress(MasterKeyMissing):
                    self._sealer.open(one.sealed, _seal_context(one.namespace, one.name))
                    opened += 1
        return opened, looked - opened

    async def reseal(self) -> tuple[int, int]:
        """Seal all channels with the first of the server's master keys.

        Return how many were sealed again, and how many had been sealed with this key already.
        """
        resealed = current = 0
        after = (0, "")
        while page := await self._store.read(lambda after=after: moves.all_channels(after)):  # type: ignore[misc]
            for one in page:
                after = (one.namespace, one.name)
                if self._sealer.is_current(one.sealed):
                    current += 1
                    continue
                anew = self._sealer.reseal(one.sealed, _seal_context(one.namespace, one.name))
                resealed += await self._store.write(
                    lambda one=one, anew=anew: moves.reseal(one, anew)  # type: ignore[misc]
                )
        return resealed, current

    async def _check(self, namespace: int, channel: AnyChannel) -> None:
        """Raise BadInput if the channel refers to a missing secret, or signs with a secret that is not suitable."""
        values = await self._values(namespace, channel)
        if isinstance(channel, Webhook) and channel.secret is not None and channel.secret.startswith(SCHEME):
            name = channel.secret.removeprefix(SCHEME)
            check_secret(values[name], f'secret "{name}"')

    async def _values(self, namespace: int, channel: AnyChannel) -> Mapping[str, str]:
        if not channel.references:
            return {}
        given = await self._secrets.grant(namespace, channel.references)
        for problem in given.problems.values():
            raise BadInput(problem, field="secret")
        return given.values

    async def _stored(self, namespace: int, name: str) -> StoredChannel:
        found = await self._store.read(lambda: moves.channels(namespace, [name]))
        if name in found:
            return found[name]
        known = [one.name for one in await self._store.read(lambda: moves.channel_page(namespace, "", 1000))]
        near = nearest(name, known)
        remedy = f"Did you mean {in_quotes(near)}?" if near else "List them with `horae alerts channels list`."
        raise NotFound(f'There is no channel "{name[:128]}".', remedy, channel=name[:128])

    def _whole(self, stored: StoredChannel) -> AnyChannel:
        return stored.with_private(self._sealer.open(stored.sealed, _seal_context(stored.namespace, stored.name)))


list_of = list  # the class has a method named `list`


def _put(
    namespace: int,
    name: str,
    channel: AnyChannel,
    sealed: bytes,
    if_match: int | None,
    before: int | None,
    now: int,
    *,
    new: bool,
) -> Script[StoredChannel]:
    """Write a channel.

    Raises Conflict if it is `new` and exists already. Raises Stale if its revision is no longer `before`, because
    secrets that the request left out were taken from that revision.
    """
    yield from moves.lock(namespace)
    present = (yield from moves.channels(namespace, [name])).get(name)
    revision = None if present is None else present.revision
    if new and present is not None:
        raise _exists(name)
    if revision != before or (if_match is not None and if_match != revision):
        raise Stale(f'The channel "{name}" was changed meanwhile.', "Read it again and repeat your change.")
    if present is None and len((yield from moves.channel_page(namespace, "", MOST_CHANNELS))) == MOST_CHANNELS:
        raise Conflict(f"There are {MOST_CHANNELS} channels already.", "Let several rules use the same channel.")
    return (yield from moves.put_channel(namespace, name, channel, sealed, now))


def _exists(name: str) -> Conflict:
    return Conflict(f'There is a channel "{name}" already.', "Change it with PUT.", channel=name)


def _seal_context(namespace: int, name: str) -> bytes:
    return f"alert-channels/{namespace}/{name}".encode()


def _shown(stored: StoredChannel, secret: str | None = None) -> ChannelView:
    return ChannelView(
        name=stored.name, kind=stored.channel.kind, description=stored.channel.description, to=stored.shown,
        secret=secret, version=stored.revision, created_at=format_instant(stored.created_at),
        updated_at=format_instant(stored.updated_at),
    )  # fmt: skip


async def keep_secret(store: Store, namespace: int, name: str) -> None:
    """Raise Conflict if channels refer to a secret, which is about to be deleted."""
    if channels := await store.read(lambda: moves.channels_using(namespace, name)):
        names = ", ".join(f'"{channel}"' for channel in channels[:MOST_NAMED])
        remedy = f"Change them first, or delete it anyway, which breaks them: `horae secrets delete {name} --force`."
        raise Conflict(f'Channels of alerts refer to the secret "{name}": {names}.', remedy)
