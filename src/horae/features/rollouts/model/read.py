"""What a request says about a rollout, read or refused."""

from typing import Any

from horae.errors import BadInput
from horae.model.definitions.rollout import Plan
from horae.model.expressions.template import compile_template
from horae.model.fields.values import KNOWN, a_text, an_int, an_object, refuse_unknown

FIELDS = ("version", "change", "share", "versions", "by", "abortAbove", "minimum")
MOST_VERSIONS = 10
MOST_BY = 512
_HOW = 'Send {"version": 7, "share": "10%"}, {"change": {...}, "share": "10%"} or {"versions": {"6": 90, "7": 10}}.'


def read_plan(given: dict[str, Any], current: int, candidate: int | None) -> Plan:
    """The plan that a body describes; `candidate` is the version of its `change`, if it has one. Raises BadInput."""
    by = a_text(given.get("by") or "", "by", most=MOST_BY)
    compile_template(by, "by", KNOWN)
    above = given.get("abortAbove")
    return Plan(
        shares=_weights(given["versions"]) if given.get("versions") is not None else _share(given, current, candidate),
        by=by,
        abort_above=None if above is None else percent(above, "abortAbove"),
        minimum=an_int(given.get("minimum", 20), "minimum", 1, 1_000_000, "How many attempts are seen before judging."),
    )


def read_body(body: Any) -> dict[str, Any]:
    """The fields of a request, each known; which versions it means is said in one way only."""
    given = an_object(body, "body", _HOW)
    refuse_unknown(given, FIELDS, "A rollout")
    given = {name: value for name, value in given.items() if value is not None}
    ways = [name for name in ("version", "change", "versions") if name in given]
    if len(ways) != 1:
        what = "does not say which version" if not ways else f"says both {ways[0]} and {ways[1]}"
        raise BadInput(f"This rollout {what}.", _HOW, field=ways[1] if ways else "version")
    if ("share" in given) == ("versions" in given):
        raise BadInput("A share goes with one version; versions have weights.", _HOW, field="share")
    return given


def _share(given: dict[str, Any], current: int, candidate: int | None) -> dict[int, float]:
    version = candidate or an_int(given["version"], "version", 1, 2**31 - 1, _HOW)
    if version == current:
        raise BadInput(f"Version {version} is the present one.", "Name another version.", field="version")
    share = percent(given["share"], "share")
    return {current: 100 - share, version: share}


def _weights(value: Any) -> dict[int, float]:
    given = an_object(value, "versions", _HOW)
    if not 1 <= len(given) <= MOST_VERSIONS:
        raise BadInput(f"versions names {len(given)} of them.", f"Name 1 to {MOST_VERSIONS}.", field="versions")
    weights: dict[int, float] = {}
    for name, weight in given.items():
        field = f"versions.{name[:20]}"
        if not name.isdecimal() or len(name) > 9 or not int(name):
            raise BadInput(f"{name[:20]!r} is not a version.", _HOW, field=field)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1_000_000:
            raise BadInput(f"The weight of version {name} is no number from 0 on.", _HOW, field=field)
        weights[int(name)] = float(weight)
    if not sum(weights.values()):
        raise BadInput("All weights are 0: nothing could run.", _HOW, field="versions")
    return weights


def percent(value: Any, field: str) -> float:
    """A share: "10%", or 10."""
    remedy = 'Write it as "10%", from 0 to 100.'
    text = value.strip().removesuffix("%") if isinstance(value, str) else value
    try:
        number = float(text) if not isinstance(text, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 100:
        raise BadInput(f"{field} {str(value)[:20]!r} is no share.", remedy, field=field)
    return number
