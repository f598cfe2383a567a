"""Keys of an envelope: what its items share with other executions, and must not share out beyond a limit.

Items whose keys differ never share a parcel, so whatever a key says is true of all items of a parcel.
"""

from functools import lru_cache

import msgspec
from msgspec import Struct

# Flags of a slice: what its leaving a shelf frees. A slice without flags frees nothing, and costs no look.
KEYED = 1  # its parcel holds keys of limits, or has its place in sequences
LIMITED = 2  # it was claimed from a lane with a limit of its job, its queue or its namespace
RATED = 4  # its start is charged to the rate of a key
AFFINE = 8  # it is remembered which worker has it: others with its key go there
# And what place it gives or takes: these free nothing.
PREEMPTS = 16  # its job takes the place of less urgent work
PREEMPTIBLE = 32  # its job gives its place to more urgent work
CIRCUIT = 64  # a circuit is asked before its start, and hears of its end
CHILD = 128  # it is what a step of a workflow runs: its end goes on with the workflow
CHOSEN = 256  # a rollout chose its version, and counts what becomes of it
AGAIN = 512  # it runs a dead letter again, which opens again if it is cancelled


class EnvelopeKeys(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The keys under which the items of a parcel stand."""

    turn: str | None = None  # a trigger's: its executions run one at a time
    gated: bool = False  # its items wait for that turn
    limits: tuple[str, ...] = ()  # of limits by key, sorted
    rated: bool = False  # some of these have a rate
    sequence: str | None = None  # runs one at a time, in the order of submission
    affinity: str | None = None  # goes to the worker that had it last
    standing: int = 0  # whether they preempt, or are preemptible: flags of their slices
    circuit: str | None = None  # of the circuit that may keep them from starting; empty for the job's own
    child: bool = False  # they are of a step of the workflow that is their parent
    rollout: int = 0  # since when the rollout is on that chose their version
    again: bool = False  # each runs a dead letter again

    @property
    def guarded(self) -> tuple[str, ...]:
        """The keys that decide when an item may be queued, in the order in which they are locked."""
        return self.limits if self.sequence is None else tuple(sorted((*self.limits, self.sequence)))

    @property
    def flags(self) -> int:
        """The flags of slices under these keys."""
        keyed = KEYED if self.limits or self.sequence is not None else 0
        rated = RATED if self.rated else 0
        affine = 0 if self.affinity is None else AFFINE
        child = (CHILD if self.child else 0) | (CHOSEN if self.rollout else 0) | (AGAIN if self.again else 0)
        return self.standing | keyed | rated | affine | child | (0 if self.circuit is None else CIRCUIT)


NO_KEYS = EnvelopeKeys()
_STANDINGS = tuple(EnvelopeKeys(standing=standing) for standing in (0, PREEMPTS, PREEMPTIBLE, PREEMPTS | PREEMPTIBLE))
_decode = msgspec.json.Decoder(EnvelopeKeys).decode


def keys_of_job(preempts: bool, preemptible: bool) -> EnvelopeKeys:
    """What all executions of a job stand under, whatever their params."""
    return _STANDINGS[preempts + 2 * preemptible]


def encode_keys(keys: EnvelopeKeys) -> str | None:
    """Keys as an envelope carries them; None when there are none."""
    return None if keys == NO_KEYS else msgspec.json.encode(keys).decode()


@lru_cache(maxsize=4096)
def keys_of(encoded: str | None) -> EnvelopeKeys:
    """The keys of an envelope."""
    return NO_KEYS if encoded is None else _decode(encoded)


def flags_of(encoded: str | None) -> int:
    """The flags of slices under an envelope's keys."""
    return 0 if encoded is None else keys_of(encoded).flags


def is_keyed(flags: int) -> bool:
    """Whether a slice with these flags stands under keys of limits, or in sequences."""
    return bool(flags & KEYED)
