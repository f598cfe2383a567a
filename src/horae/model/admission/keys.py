"""The keys of an envelope: limits, sequences and other properties that decide when its items may start.

Items with different keys never share a parcel, so the keys of a parcel apply to all its items.
"""

from functools import lru_cache

import msgspec
from msgspec import Struct

# Flags of a slice: most require bookkeeping when the slice leaves a shelf. A slice without flags needs no lookup.
KEYED = 1  # its parcel holds keys of limits, or a place in a sequence
LIMITED = 2  # it was claimed from a lane with a limit of its queue or its namespace
RATED = 4  # its start is charged to the rate of a key
AFFINE = 8  # its worker is recorded, because executions with the same affinity key prefer that worker
# The next two decide which work yields to other work; they need no bookkeeping.
PREEMPTS = 16  # its job may preempt less urgent work
PREEMPTIBLE = 32  # its job may be preempted by more urgent work
CIRCUIT = 64  # a circuit is checked before it starts, and counts its end
CHILD = 128  # it runs a step of a workflow: its end continues the workflow
CHOSEN = 256  # a rollout chose its version, and counts its result
REPLAYS = 512  # it replays a dead letter, which is reopened if this execution is cancelled


class EnvelopeKeys(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The keys that apply to the items of a parcel."""

    turn: str | None = None  # key of the turns of a trigger whose executions run one at a time
    gated: bool = False  # its items wait for that turn
    limits: tuple[str, ...] = ()  # names of limits by key, sorted
    rated: bool = False  # some of these limits have a rate
    sequence: str | None = None  # its executions run one at a time, in order of submission
    affinity: str | None = None  # executions go to the worker that ran this key last
    standing: int = 0  # the flags PREEMPTS and PREEMPTIBLE of their slices
    circuit: str | None = None  # key of the circuit that can block their start; empty for the job's own
    child: bool = False  # they run a step of the workflow that is their parent
    rollout: int = 0  # instant at which the rollout started that chose their version; 0: none
    again: bool = False  # each replays a dead letter

    @property
    def guarded(self) -> tuple[str, ...]:
        """Return the keys that decide when an item may be queued, in locking order."""
        return self.limits if self.sequence is None else tuple(sorted((*self.limits, self.sequence)))

    @property
    def flags(self) -> int:
        """Return the flags of slices with these keys."""
        keyed = KEYED if self.limits or self.sequence is not None else 0
        rated = RATED if self.rated else 0
        affine = 0 if self.affinity is None else AFFINE
        child = (CHILD if self.child else 0) | (CHOSEN if self.rollout else 0) | (REPLAYS if self.again else 0)
        return self.standing | keyed | rated | affine | child | (0 if self.circuit is None else CIRCUIT)


NO_KEYS = EnvelopeKeys()
_STANDINGS = tuple(EnvelopeKeys(standing=standing) for standing in (0, PREEMPTS, PREEMPTIBLE, PREEMPTS | PREEMPTIBLE))
_decode = msgspec.json.Decoder(EnvelopeKeys).decode


def keys_of_job(preempts: bool, preemptible: bool) -> EnvelopeKeys:
    """Return the keys that do not depend on the params of an execution: the flags for preemption."""
    return _STANDINGS[preempts + 2 * preemptible]


def encode_keys(keys: EnvelopeKeys) -> str | None:
    """Encode keys for an envelope; None when there are none."""
    return None if keys == NO_KEYS else msgspec.json.encode(keys).decode()


@lru_cache(maxsize=4096)
def keys_of(encoded: str | None) -> EnvelopeKeys:
    """Decode the keys of an envelope."""
    return NO_KEYS if encoded is None else _decode(encoded)


def flags_of(encoded: str | None) -> int:
    """Return the flags of slices with an envelope's keys."""
    return 0 if encoded is None else keys_of(encoded).flags


def is_keyed(flags: int) -> bool:
    """Return whether a slice with these flags has keys of limits or sequences."""
    return bool(flags & KEYED)
