"""Policies: how a queue chooses what runs next.

Two numbers decide. Within a lane the rank orders (`rank.py`); between the shares of a fair queue the least virtual
time does (`shares.py`). A policy says how both are computed.
"""

from typing import Literal

from msgspec import Struct

from horae.env import SECOND, Micros

Kind = Literal["fifo", "priority", "fair", "deadline", "shortest"]
KINDS: tuple[Kind, ...] = ("fifo", "priority", "fair", "deadline", "shortest")
Charge = Literal["time", "executions"]
QUANTUM = 16  # executions that a share gets at a time while others wait
QUANTUM_TIME: Micros = SECOND  # and no more worker time than that, but one execution at least
SHORT_TIME: Micros = SECOND // 100  # of what is so short that more than 16 take no longer, up to a whole parcel
MOST_AT_A_TIME = 1024


class Policy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How a queue orders its executions.

    `priority` is arrival minus a head start per level, so nothing starves; `strict` is without that bound. `shortest`
    is arrival plus `factor` times the expected duration, so long ones run too. `fair` divides by `by`, and orders
    `within` a share.
    """

    kind: Kind = "priority"
    ageing: Micros = 60 * SECOND
    strict: bool = False
    factor: float = 10.0
    by: str = "job"  # of fair: "job", "caller" or a template
    within: "Policy | None" = None  # of fair: the order inside a share, fifo unless given
    weights: dict[str, float] = {}
    default_weight: float = 1.0
    reserve: dict[str, int | str] = {}  # slots, or a percentage of those that serve the queue
    charge: Charge = "time"

    @property
    def is_fair(self) -> bool:
        return self.kind == "fair"

    @property
    def inner(self) -> "Policy":
        """What orders executions that stand in one lane."""
        if self.kind != "fair":
            return self
        return self.within or FIFO

    def weight(self, share: str) -> float:
        """How much of a fair queue a share gets, against those of others."""
        return self.weights.get(share, self.default_weight)

    @property
    def ranks_by_arrival(self) -> bool:
        """Whether ranks are arrivals with a bounded head start: such queues can be served as one line."""
        return self.kind == "fifo" or (self.kind == "priority" and not self.strict)


FIFO = Policy(kind="fifo")


def quantum(expected: float) -> int:
    """How many executions of such a length a share gets at a time while others wait."""
    if expected > QUANTUM_TIME / QUANTUM:
        return max(1, int(QUANTUM_TIME / expected))
    if expected > SHORT_TIME / QUANTUM:
        return QUANTUM
    return min(MOST_AT_A_TIME, int(SHORT_TIME / max(1.0, expected)))


def slots_reserved(reserve: int | str, slots: int) -> int:
    """How many of these slots a share may claim for itself; a percentage is of all, and at least one."""
    if isinstance(reserve, int):
        return reserve
    return max(1, int(slots * float(reserve.rstrip("%")) / 100)) if slots else 0
