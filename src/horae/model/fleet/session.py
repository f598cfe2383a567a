"""A session: the registration of a worker, and the worker's capabilities."""

import struct
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.placement.placement import capacity_entries
from horae.model.definitions.job import STEADY
from horae.model.fleet.protocol import CHANNELS, Register
from horae.model.tenancy.secret_refs import SEALED, TAKES_SECRETS

SessionState = Literal["live", "draining", "detached", "detached-draining", "lost", "closed"]
SPOT = "spot"  # the label of a worker that can disappear at short notice
LIVE: frozenset[str] = frozenset({"live", "draining"})
# Sessions of the epoch before a failover. They keep their running slices and get no work until they re-attach, which
# gives them back the state that is named here.
DETACHED: dict[str, SessionState] = {"detached": "live", "detached-draining": "draining"}
PRESENT = LIVE | DETACHED.keys()  # sessions that have not ended
REATTACHES = "reattaches:"  # capability of workers that re-attach after a failover; no label has this form

_SEEN = struct.Struct(f"<{CHANNELS}q")
NOTHING_SEEN = _SEEN.pack(*[0] * CHANNELS)


class Session(Struct, frozen=True, kw_only=True):
    """The stored state of a session."""

    id: UUID
    namespace: int
    worker: str
    presence: Register
    capabilities: frozenset[str]
    queues: tuple[str, ...]
    concurrency: int
    state: SessionState
    epoch: int
    last_seen: Instant
    created_at: Instant
    ended_at: Instant | None = None
    running: int = 0


def seen_on(seen: bytes, channel: int) -> int:
    """Return the number of the last exchange decided on a channel, from `seen`, the stored record of all channels."""
    return int(_SEEN.unpack(seen)[channel])


def see(seen: bytes, channel: int, n: int) -> bytes:
    """Return the record after exchange `n` was decided on a channel."""
    numbers = list(_SEEN.unpack(seen))
    numbers[channel] = n
    return _SEEN.pack(*numbers)


def capabilities_of(presence: Register) -> frozenset[str]:
    """Return a worker's capabilities: labels ("gpu=a100" and "gpu"), kinds of work, functions, capacity and protocol.

    A worker without the label `spot` has the capability STEADY. Its name and its host are labels, too, so that jobs can
    be bound to them.
    """
    carried = labels_of(presence)
    labels = {f"{name}={value}" for name, value in carried.items()} | set(carried)
    kinds = {f"kind:{kind}" for kind in presence.kinds}
    functions = {f"function:{function.name}" for function in presence.functions}
    capacity = set(capacity_entries(presence.concurrency, presence.resources))
    steady = set() if SPOT in presence.labels else {STEADY}
    discreet = {SEALED, TAKES_SECRETS} if presence.secrets else {SEALED}
    lasting = {REATTACHES} if presence.reattaches else set()
    return frozenset(
        labels | kinds | functions | capacity | steady | discreet | lasting | {f"protocol:{presence.protocol}"}
    )


def labels_of(presence: Register) -> dict[str, str]:
    """Return a worker's labels, together with the labels `worker` and `host`."""
    own = {"worker": presence.worker, "host": presence.host}
    return {**presence.labels, **{name: value for name, value in own.items() if value}}
