"""A queue's policy as users write it: a kind alone, or an object; and how it is shown."""

import re
from typing import Any

from horae.errors import BadInput
from horae.model.admission.policy import KINDS, Policy
from horae.model.admission.share_key import check_by
from horae.model.base.duration import DAY, format_duration
from horae.model.fields.values import a_duration, a_number, a_text, an_int, an_object, kind_of, one_of, refuse_unknown

FIELDS = {
    "fifo": (),
    "priority": ("ageing", "strict"),
    "deadline": (),
    "shortest": ("factor",),
    "fair": ("by", "within", "weights", "defaultWeight", "reserve", "charge"),
}
MOST_SHARES = 1000  # that are named by weight or reserve
MOST_SLOTS = 100_000
_REMEDY = 'Write a kind as "fair", or {"kind": "fair", "by": "${params.customer}"}.'
_PERCENT = re.compile(r"\d{1,3}(\.\d+)?%")


def parse_policy(value: Any, field: str = "policy") -> Policy:
    """Read a policy or refuse it with what is wrong."""
    if isinstance(value, str):
        value = {"kind": value}
    given = an_object(value, field, _REMEDY)
    if "kind" not in given:
        raise BadInput(f"{field} has no kind.", f"It is one of: {', '.join(KINDS)}.", field=f"{field}.kind")
    kind: Any = one_of(given["kind"], f"{field}.kind", KINDS)
    _refuse_others(given, kind, field)
    if kind == "priority":
        return _priority(given, field)
    if kind == "shortest":
        return Policy(kind=kind, factor=a_number(given.get("factor", 10), f"{field}.factor", 0.1, 1000))
    return _fair(given, field) if kind == "fair" else Policy(kind=kind)


def _refuse_others(given: dict[str, Any], kind: str, field: str) -> None:
    """A field of another kind would be accepted and do nothing."""
    own = ("kind", *FIELDS[kind])
    for name in given:
        owners = [other for other, fields in FIELDS.items() if name in fields]
        if name not in own and owners:
            remedy = f'It belongs to "{owners[0]}"; leave it out, or set "kind": "{owners[0]}".'
            raise BadInput(f'A policy of kind "{kind}" has no {name}.', remedy, field=f"{field}.{name}")
    refuse_unknown(given, own, "A policy", f"{field}.")


def _priority(given: dict[str, Any], field: str) -> Policy:
    strict = given.get("strict", False)
    if not isinstance(strict, bool):
        raise BadInput(f"{field}.strict is {kind_of(strict)}.", "It is true or false.", field=f"{field}.strict")
    if strict and "ageing" in given:
        detail = "A strict priority has no ageing: a higher level always goes first."
        raise BadInput(detail, "Leave ageing or strict out.", field=f"{field}.ageing")
    ageing = a_duration(given.get("ageing", "60s"), f"{field}.ageing", 0, DAY)
    return Policy(kind="priority", ageing=ageing, strict=strict)


def _fair(given: dict[str, Any], field: str) -> Policy:
    within = parse_policy(given["within"], f"{field}.within") if given.get("within") is not None else None
    if within is not None and within.is_fair:
        detail = f"{field}.within cannot be fair: shares are not divided again."
        raise BadInput(
            detail, "Divide by one key, as in ${params.customer + '/' + params.team}.", field=f"{field}.within"
        )
    charge: Any = one_of(given.get("charge", "time"), f"{field}.charge", ("time", "executions"))
    policy = Policy(
        kind="fair",
        by=check_by(given.get("by", "job"), f"{field}.by"),
        within=within,
        weights={
            share: _weight(weight, f"{field}.weights.{share[:60]}")
            for share, weight in _shares(given.get("weights", {}), f"{field}.weights", '{"acme": 5}').items()
        },
        default_weight=_weight(given.get("defaultWeight", 1), f"{field}.defaultWeight"),
        reserve={
            share: _reserve(slots, f"{field}.reserve.{share[:60]}")
            for share, slots in _shares(given.get("reserve", {}), f"{field}.reserve", '{"acme": 4}').items()
        },
        charge=charge,
    )
    _check_reserves(policy, field)
    return policy


def _check_reserves(policy: Policy, field: str) -> None:
    total = sum(float(one.rstrip("%")) for one in policy.reserve.values() if isinstance(one, str))
    if total > 100:
        detail = f"{field}.reserve promises {total:g}% of the slots."
        raise BadInput(detail, "Let the percentages add up to 100% at most.", field=f"{field}.reserve")


def _shares(value: Any, field: str, example: str) -> dict[str, Any]:
    given = an_object(value, field, f"Write {example}.")
    if len(given) > MOST_SHARES:
        raise BadInput(f"{field} has {len(given)} entries.", f"At most {MOST_SHARES} are allowed.", field=field)
    return {a_text(share, f"{field}.{share[:60]}", most=256): one for share, one in given.items()}


def _weight(value: Any, field: str) -> float:
    if value == 0 and not isinstance(value, bool):
        remedy = "Weights are from 0.001 to 1000; hold or pause what is not to run."
        raise BadInput(f"{field} cannot be 0: that share would never run.", remedy, field=field)
    return a_number(value, field, 0.001, 1000)


def _reserve(value: Any, field: str) -> int | str:
    if not isinstance(value, str):
        return an_int(value, field, 1, MOST_SLOTS, 'Write slots as 4, or a part of them as "25%".')
    if not _PERCENT.fullmatch(value) or not 0 < float(value[:-1]) <= 100:
        raise BadInput(
            f"{field} cannot be {value[:40]!r}.", 'Write slots as 4, or a part of them as "25%".', field=field
        )
    return value


def show_policy(policy: Policy) -> dict[str, Any]:
    """A policy as it could be written, with what it leaves to defaults."""
    if policy.kind == "priority":
        return (
            {"kind": "priority", "strict": True}
            if policy.strict
            else {"kind": "priority", "ageing": format_duration(policy.ageing)}
        )
    if policy.kind == "shortest":
        return {"kind": "shortest", "factor": policy.factor}
    if not policy.is_fair:
        return {"kind": policy.kind}
    shown: dict[str, Any] = {
        "kind": "fair",
        "by": policy.by,
        "within": show_policy(policy.inner),
        "defaultWeight": policy.default_weight,
        "charge": policy.charge,
    }
    return {
        **shown,
        **({"weights": policy.weights} if policy.weights else {}),
        **({"reserve": policy.reserve} if policy.reserve else {}),
    }
