"""Scripts for the tables of alert rules and channels. The secret parts of channels are stored sealed."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.features.alerts.model.channel import AnyChannel, ChannelKind, join_parts, private_part, public_part, redacted
from horae.features.alerts.model.rule import AnyRule, RuleState
from horae.store.base import locks
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Row, Script, Statement

_RULE = "namespace, name, spec, state, revision, pace, unsaid, created_at, updated_at"
_CHANNEL = "namespace, name, spec, sealed, shown, revision, created_at, updated_at"
RULE = Statement("alert_rule", f"SELECT {_RULE} FROM alert_rules WHERE namespace = $1 AND name = $2")
LOCK_RULE = Statement("lock_alert_rule", f"{RULE.text} FOR UPDATE")
RULES = Statement(
    "alert_rule_page", f"SELECT {_RULE} FROM alert_rules WHERE namespace = $1 AND name > $2 ORDER BY name LIMIT $3"
)
ACTIVE = Statement(
    "active_alert_rules",
    f"SELECT {_RULE} FROM alert_rules WHERE state = 'active' AND (namespace, name) > ($1, $2)"
    " ORDER BY namespace, name LIMIT $3",
)
PUT_RULE = Statement(
    "put_alert_rule",
    "INSERT INTO alert_rules (namespace, name, spec, state, revision, pace, created_at, updated_at)"
    " VALUES ($1, $2, $3, 'active', 1, 0, $4, $4) ON CONFLICT (namespace, name) DO UPDATE SET spec = excluded.spec,"
    " revision = alert_rules.revision + 1, updated_at = excluded.updated_at",
)
SET_STATE = Statement(
    "set_alert_rule_state",
    "UPDATE alert_rules SET state = $3, revision = revision + 1, updated_at = $4 WHERE namespace = $1 AND name = $2",
)
SET_PACE = Statement(
    "set_alert_rule_pace", "UPDATE alert_rules SET pace = $3, unsaid = $4 WHERE namespace = $1 AND name = $2"
)
DELETE_RULE = Statement("delete_alert_rule", "DELETE FROM alert_rules WHERE namespace = $1 AND name = $2")
# The alerts of a paused or deleted rule end without notices.
END_OPEN = Statement(
    "end_alerts_of_rule",
    "UPDATE alerts SET state = 'recovered', recovered_at = $3, last_at = $3"
    " WHERE namespace = $1 AND rule = $2 AND state = 'firing' RETURNING id, job",
)
CHANNELS = Statement(
    "alert_channels",
    "SELECT c.namespace, c.name, c.spec, c.sealed, c.shown, c.revision, c.created_at, c.updated_at FROM given"
    " JOIN alert_channels c ON c.namespace = given.namespace AND c.name = given.name",
)
CHANNEL_PAGE = Statement(
    "alert_channel_page",
    f"SELECT {_CHANNEL} FROM alert_channels WHERE namespace = $1 AND name > $2 ORDER BY name LIMIT $3",
)
ALL_CHANNELS = Statement(
    "all_alert_channels",
    f"SELECT {_CHANNEL} FROM alert_channels WHERE (namespace, name) > ($1, $2) ORDER BY namespace, name LIMIT $3",
)
USING = Statement(
    "alert_channels_using", "SELECT name, spec FROM alert_channels WHERE namespace = $1 AND spec LIKE $2 ORDER BY name"
)
PUT_CHANNEL = Statement(
    "put_alert_channel",
    "INSERT INTO alert_channels (namespace, name, spec, sealed, shown, revision, created_at, updated_at)"
    " VALUES ($1, $2, $3, $4, $5, 1, $6, $6) ON CONFLICT (namespace, name) DO UPDATE SET spec = excluded.spec,"
    " sealed = excluded.sealed, shown = excluded.shown, revision = alert_channels.revision + 1,"
    " updated_at = excluded.updated_at",
)
RESEAL = Statement(
    "reseal_alert_channel",
    "UPDATE alert_channels SET sealed = $4 WHERE namespace = $1 AND name = $2 AND sealed = $3 RETURNING name",
)
DELETE_CHANNEL = Statement("delete_alert_channel", "DELETE FROM alert_channels WHERE namespace = $1 AND name = $2")
ALL_SPECS = Statement("specs_of_alert_rules", "SELECT name, spec FROM alert_rules WHERE namespace = $1 ORDER BY name")
PAGE = 500
Edition = tuple[Instant, int]


class StoredChannelSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a channel that is not sealed."""

    kind: ChannelKind
    description: str = ""
    public: dict[str, Any] = {}  # the fields that are not secret
    uses: tuple[str, ...] = ()  # the names of the stored secrets to which the sealed fields refer


_rule = msgspec.json.Decoder(AnyRule).decode
_channel = msgspec.json.Decoder(StoredChannelSpec).decode


class StoredRule(Struct, frozen=True, kw_only=True):
    """A rule as it is stored."""

    namespace: int
    name: str
    rule: AnyRule
    state: RuleState
    revision: int  # grows with each change
    pace: Instant  # the state of its rate limit of notices
    unnotified: int  # alerts that opened and ended without a notice, since the last notice about new alerts
    created_at: Instant
    updated_at: Instant

    @property
    def edition(self) -> Edition:
        """A value that differs from that of each earlier rule of this name, also if the name was deleted meanwhile."""
        return self.created_at, self.revision


class StoredChannel(Struct, frozen=True, kw_only=True):
    """A channel as it is stored."""

    namespace: int
    name: str
    channel: StoredChannelSpec
    sealed: bytes  # its secret fields
    shown: dict[str, Any]  # its receivers without secrets, for users
    revision: int
    created_at: Instant
    updated_at: Instant

    def with_private(self, private: bytes) -> AnyChannel:
        """Return the channel; `private` is the content of its sealed part."""
        return join_parts(
            self.channel.kind, self.channel.description, self.channel.public, msgspec.json.decode(private)
        )


def sealed_part(channel: AnyChannel) -> bytes:
    """Return the secret fields of a channel as JSON, which the caller seals."""
    return msgspec.json.encode(private_part(channel))


def read_rule(row: Row) -> StoredRule:
    namespace, name, spec, state, revision, pace, unsaid, created_at, updated_at = row
    return StoredRule(
        namespace=namespace, name=name, rule=_rule(spec), state=state, revision=revision, pace=pace, unnotified=unsaid,
        created_at=created_at, updated_at=updated_at,
    )  # fmt: skip


def _stored(row: Row) -> StoredChannel:
    namespace, name, spec, sealed, shown, revision, created_at, updated_at = row
    return StoredChannel(
        namespace=namespace, name=name, channel=_channel(spec), sealed=bytes(sealed),
        shown=msgspec.json.decode(shown), revision=revision, created_at=created_at, updated_at=updated_at,
    )  # fmt: skip


def lock(namespace: int) -> Script[None]:
    """Lock the rules and channels of a namespace, so that no channel is deleted that a rule names."""
    yield from locks.take(f"alerts:{namespace}", shared=locks.of_namespace(namespace))


def rule(namespace: int, name: str, *, lock: bool = False) -> Script[StoredRule | None]:
    """Return a rule; with `lock`, lock its row. A transaction that changes alerts must lock their rule before."""
    rows = yield Fetch(LOCK_RULE if lock else RULE, (namespace, name))
    return read_rule(rows[0]) if rows else None


def rules(namespace: int, after: str, limit: int) -> Script[list[StoredRule]]:
    """Return a page of rules, ordered by name."""
    return [read_rule(row) for row in (yield Fetch(RULES, (namespace, after, limit)))]


def active(after: tuple[int, str], limit: int = PAGE) -> Script[list[StoredRule]]:
    """Return a page of the active rules of all namespaces."""
    return [read_rule(row) for row in (yield Fetch(ACTIVE, (*after, limit)))]


def put_rule(namespace: int, name: str, rule: AnyRule, now: Instant) -> Script[StoredRule]:
    """Create or replace a rule. The caller holds the namespace's lock, see `lock`."""
    yield Fetch(PUT_RULE, (namespace, name, msgspec.json.encode(rule).decode(), now))
    return read_rule((yield Fetch(RULE, (namespace, name)))[0])


def set_rule_state(namespace: int, name: str, state: RuleState, now: Instant) -> Script[None]:
    """Set the state of a rule."""
    yield Fetch(SET_STATE, (namespace, name, state, now))


def end_open(namespace: int, name: str, now: Instant) -> Script[list[Row]]:
    """End the firing alerts of a rule, without notices."""
    return (yield Fetch(END_OPEN, (namespace, name, now)))


def delete_rule(namespace: int, name: str) -> Script[None]:
    """Delete a rule."""
    yield Fetch(DELETE_RULE, (namespace, name))


def channels(namespace: int, names: Iterable[str]) -> Script[dict[str, StoredChannel]]:
    """Return the channels that exist, by name."""
    columns: Columns = (("namespace", "int"), ("name", "text"))
    rows = yield ForEach(CHANNELS, columns, [(namespace, name) for name in sorted(set(names))])
    return {row[1]: _stored(row) for row in rows}


def channel_page(namespace: int, after: str, limit: int) -> Script[list[StoredChannel]]:
    """Return a page of channels, ordered by name."""
    return [_stored(row) for row in (yield Fetch(CHANNEL_PAGE, (namespace, after, limit)))]


def all_channels(after: tuple[int, str]) -> Script[list[StoredChannel]]:
    """Return a page of the channels of all namespaces."""
    return [_stored(row) for row in (yield Fetch(ALL_CHANNELS, (*after, PAGE)))]


def put_channel(namespace: int, name: str, channel: AnyChannel, sealed: bytes, now: Instant) -> Script[StoredChannel]:
    """Create or replace a channel. The caller holds the namespace's lock, see `lock`."""
    spec = StoredChannelSpec(
        kind=channel.kind, description=channel.description, public=public_part(channel), uses=channel.references
    )
    shown = msgspec.json.encode(redacted(channel)).decode()
    yield Fetch(PUT_CHANNEL, (namespace, name, msgspec.json.encode(spec).decode(), sealed, shown, now))
    return (yield from channels(namespace, [name]))[name]


def reseal(channel: StoredChannel, sealed: bytes) -> Script[bool]:
    """Replace the sealed part of a channel; return False if it has changed meanwhile."""
    return bool((yield Fetch(RESEAL, (channel.namespace, channel.name, channel.sealed, sealed))))


def delete_channel(namespace: int, name: str) -> Script[None]:
    """Delete a channel."""
    yield Fetch(DELETE_CHANNEL, (namespace, name))


def channels_using(namespace: int, secret: str) -> Script[list[str]]:
    """Return the channels that refer to a secret."""
    rows = yield Fetch(USING, (namespace, f'%"{secret}"%'))
    return [name for name, spec in rows if secret in _channel(spec).uses]


def rules_naming(namespace: int, channel: str) -> Script[Sequence[str]]:
    """Return the rules that notify a channel."""
    rows = yield Fetch(ALL_SPECS, (namespace,))
    return [name for name, spec in rows if channel in _rule(spec).channels]
