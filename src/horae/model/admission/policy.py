"""Policies: the order in which a queue starts its executions.

Two numbers decide. Within a lane, the lowest rank is first (`rank.py`). Between the shares of a fair queue, the least
virtual time is first (`virtual_times.py`). A policy says how both numbers are computed. Each kind of policy is a
struct, whose annotations describe its fields.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Struct

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY
from horae.model.expressions.template import compile_template
from horae.model.fields.kinds import Choice, Custom, Duration, Flag, Number
from horae.model.fields.table import Document, Field, Group
from horae.model.fields.values import KNOWN, a_text, an_int, an_object, one_of, refuse_unknown
from horae.model.fields.variants import Variants

Charge = Literal["time", "executions"]
QUANTUM = 16  # executions that a share gets at a time while other shares wait
QUANTUM_TIME: Micros = SECOND  # the worker time that a share gets at a time; at least one execution
SHORT_TIME: Micros = SECOND // 100  # total worker time of the very short executions that a share gets at a time
MOST_AT_A_TIME = 1024  # executions that a share gets at a time at most
MOST_SHARES = 1000  # shares with a weight or a reserve
MOST_SLOTS = 100_000
_PERCENT = re.compile(r"\d{1,3}(\.\d+)?%")
_REMEDY = 'Write a kind as "fair", or {"kind": "fair", "by": "${params.customer}"}.'
_BY = 'Write "job", "caller", or a template as "${params.customer}".'
_SLOTS = 'Write slots as 4, or a part of them as "25%".'


def _read_by(value: Any, at: str) -> str:
    """Read the key by which a fair queue is divided. Raises BadInput."""
    if value == "namespace":
        remedy = 'All executions of the queue are in one namespace. Divide it by a param, such as "${params.tenant}".'
        raise BadInput("A queue belongs to one namespace and cannot be divided by it.", remedy, field=at)
    if not isinstance(value, str) or (value not in ("job", "caller") and "${" not in value):
        raise BadInput(f"{at} does not distinguish executions.", _BY, field=at)
    if len(value) > 1024:
        raise BadInput(f"{at} has {len(value)} characters.", "At most 1024 are allowed.", field=at)
    compile_template(value, at, KNOWN)
    return value


def _read_within(value: Any, at: str) -> "Policy":
    within = read_policy(value, at)
    if isinstance(within, FairPolicy):
        remedy = "Divide by one key, as in ${params.customer + '/' + params.team}."
        raise BadInput(f"{at} cannot be fair: shares are not divided again.", remedy, field=at)
    return within


def _write_within(order: "Order") -> dict[str, Any]:
    return write_policy(order)


def _of_shares(value: Any, at: str, example: str) -> dict[str, Any]:
    given = an_object(value, at, f"Write {example}.")
    if len(given) > MOST_SHARES:
        raise BadInput(f"{at} has {len(given)} entries.", f"At most {MOST_SHARES} are allowed.", field=at)
    return {a_text(share, f"{at}.{share[:60]}", most=256): one for share, one in given.items()}


def _read_weights(value: Any, at: str) -> dict[str, float]:
    shares = _of_shares(value, at, '{"acme": 5}')
    return {share: _WEIGHT.read(one, f"{at}.{share[:60]}") for share, one in shares.items()}


def _read_reserves(value: Any, at: str) -> dict[str, int | str]:
    shares = _of_shares(value, at, '{"acme": 4}')
    read = {share: _read_reserve(one, f"{at}.{share[:60]}") for share, one in shares.items()}
    total = sum(Decimal(one.rstrip("%")) for one in read.values() if isinstance(one, str))
    if total > 100:
        raise BadInput(
            f"{at} promises {total:g}% of the slots.", "Let the percentages add up to 100% at most.", field=at
        )
    return read


def _read_reserve(value: Any, at: str) -> int | str:
    if not isinstance(value, str):
        return an_int(value, at, 1, MOST_SLOTS, _SLOTS)
    if not _PERCENT.fullmatch(value) or not 0 < float(value[:-1]) <= 100:
        raise BadInput(f"{at} cannot be {value[:40]!r}.", _SLOTS, field=at)
    return value


def _read_head_start(given: Document, prefix: str) -> dict[str, Any]:
    ageing, strict = given.get("ageing"), given.get("strict")
    read: dict[str, Any] = {} if strict is None else {"strict": _STRICT.read(strict, f"{prefix}strict")}
    if ageing is None:
        return read
    if read.get("strict"):
        detail = "A strict priority has no ageing: a higher level always goes first."
        raise BadInput(detail, "Remove `ageing` or `strict`.", field=f"{prefix}ageing")
    return {**read, "ageing": _AGEING.read(ageing, f"{prefix}ageing")}


def _write_head_start(policy: "PriorityPolicy") -> dict[str, Any]:
    return {"strict": True} if policy.strict else {"ageing": _AGEING.write(policy.ageing)}


class _Weight(Number):
    def read(self, value: Any, at: str) -> float:
        if value == 0 and not isinstance(value, bool):
            remedy = "Weights are from 0.001 to 1000; hold or pause what must not run."
            raise BadInput(f"{at} cannot be 0: that share would never run.", remedy, field=at)
        return super().read(value, at)


_WEIGHT = _Weight(0.001, 1000)
_AGEING, _STRICT = Duration(0, DAY), Flag()
_HEAD_START = Group(_read_head_start, _write_head_start)


class _Policy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="kind"):
    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class FifoPolicy(_Policy, frozen=True, kw_only=True, tag="fifo"):
    """First in, first out."""


class PriorityPolicy(_Policy, frozen=True, kw_only=True, tag="priority"):
    """Arrival order with a head start for each level of priority. Nothing starves, unless the policy is strict."""

    ageing: Annotated[
        Micros, _HEAD_START, Field(_AGEING, "The head start of each level of priority.", example="60s")
    ] = 60 * SECOND
    strict: Annotated[bool, _HEAD_START, Field(_STRICT, "Whether a higher level always goes first.")] = False


class DeadlinePolicy(_Policy, frozen=True, kw_only=True, tag="deadline"):
    """Earliest deadline first."""


class ShortestPolicy(_Policy, frozen=True, kw_only=True, tag="shortest"):
    """Arrival order, delayed in proportion to the expected duration. Long executions run, too."""

    factor: Annotated[
        float, Field(Number(0.1, 1000), "How much later an execution ranks: its expected duration times this factor.")
    ] = 10.0


Order = FifoPolicy | PriorityPolicy | DeadlinePolicy | ShortestPolicy  # the order of executions in one lane
FIFO = FifoPolicy()
PRIORITY = PriorityPolicy()  # the default of a queue


class FairPolicy(_Policy, frozen=True, kw_only=True, tag="fair"):
    """The share that has received the least service for its weight is next."""

    by: Annotated[
        str,
        Field(
            Custom(_read_by, str, "str"),
            "The key that divides executions into shares: job, caller, or a template.",
            example="${params.customer}",
            metavar="KEY",
        ),
    ] = "job"
    within: Annotated[
        Order,
        Field(
            Custom(_read_within, str | dict[str, Any], "str | Mapping[str, Any]", _write_within),
            "The order inside a share.",
            example="priority",
            metavar="KIND",
        ),
    ] = FIFO
    weights: Annotated[
        dict[str, float],
        Field(
            Custom(_read_weights, dict[str, float], "Mapping[str, float]", option="pairs"),
            "The weights of shares: how much of the queue each gets, compared with the others.",
            example={"acme": 5},
            flag="weight",
            metavar="SHARE=N",
        ),
    ] = {}
    default_weight: Annotated[float, Field(_WEIGHT, "The weight of shares that are not named.")] = 1.0
    reserve: Annotated[
        dict[str, int | str],
        Field(
            Custom(_read_reserves, dict[str, int | str], "Mapping[str, int | str]", option="pairs"),
            "Slots reserved for shares: a number, or a percentage of the slots that serve the queue.",
            example={"acme": "25%"},
            metavar="SHARE=N",
        ),
    ] = {}
    charge: Annotated[
        Charge, Field(Choice(get_args(Charge)), "What counts as service of a share: worker time, or executions.")
    ] = "time"

    def weight(self, share: str) -> float:
        """Return the weight of a share."""
        return self.weights.get(share, self.default_weight)


Policy = FifoPolicy | PriorityPolicy | FairPolicy | DeadlinePolicy | ShortestPolicy
POLICIES = Variants(Policy, "A policy", "The order in which executions start.", _REMEDY)
KINDS = tuple(POLICIES.tables)


def read_policy(value: Any, at: str = "policy") -> Policy:
    """Read a policy as users write it, a kind or an object. Raises BadInput."""
    given = an_object({"kind": value} if isinstance(value, str) else value, at, _REMEDY)
    if "kind" not in given:
        raise BadInput(f"{at} has no kind.", f"Choose one of: {', '.join(KINDS)}.", field=f"{at}.kind")
    kind = one_of(given["kind"], f"{at}.kind", KINDS)
    table = POLICIES.tables[kind]
    for name in given.keys() - {"kind", *table.names}:
        _refuse_other(name, kind, at)
    policy: Policy = POLICIES.structs[kind](**table.read(given, f"{at}."))  # type: ignore[assignment] # one of them
    return policy


def _refuse_other(name: str, kind: str, at: str) -> None:
    """Refuse a field that belongs to another kind, because it would have no effect."""
    owner = next((other for other, table in POLICIES.tables.items() if name in table.names), None)
    if owner is not None:
        remedy = f'This field belongs to "{owner}": remove it, or set "kind": "{owner}".'
        raise BadInput(f'A policy of kind "{kind}" has no {name}.', remedy, field=f"{at}.{name}")
    refuse_unknown({name: None}, ("kind", *POLICIES.tables[kind].names), "A policy", f"{at}.")


def write_policy(policy: Policy) -> dict[str, Any]:
    """Write a policy with its defaults, without empty weights and reserves."""
    return {name: value for name, value in POLICIES.write(policy).items() if value != {}}


POLICY = Custom(read_policy, str | dict[str, Any], "str | Mapping[str, Any]", write_policy, out=dict[str, Any])


@lru_cache(maxsize=1024)
def decode_policy(text: str) -> Policy:
    """Decode a stored policy. The first version of Horae stored no kind for `priority`."""
    stored = msgspec.json.decode(text)
    for one in (stored, stored["within"]) if "within" in stored else (stored,):
        one.setdefault("kind", "priority")
    policy: Policy = msgspec.convert(stored, Policy)
    return policy


def order_within(policy: Policy) -> Order:
    """Return the order of executions in one lane."""
    return policy.within if isinstance(policy, FairPolicy) else policy


def ranks_by_arrival(policy: Policy) -> bool:
    """Return whether ranks are arrival times less a bounded head start; queues of such policies can share one order."""
    return isinstance(policy, FifoPolicy) or (isinstance(policy, PriorityPolicy) and not policy.strict)


def quantum(expected: float) -> int:
    """Return how many executions of this expected duration a share gets at a time while others wait."""
    if expected > QUANTUM_TIME / QUANTUM:
        return max(1, int(QUANTUM_TIME / expected))
    if expected > SHORT_TIME / QUANTUM:
        return QUANTUM
    return min(MOST_AT_A_TIME, int(SHORT_TIME / max(1.0, expected)))


def slots_reserved(reserve: int | str, slots: int) -> int:
    """Return how many of `slots` a share reserves; a percentage reserves at least one slot."""
    if isinstance(reserve, int):
        return reserve
    return max(1, int(slots * float(reserve.rstrip("%")) / 100)) if slots else 0
