"""Parsing of rollout requests; the fields are declared once, here."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from horae.errors import BadInput
from horae.model.definitions.rollout import RolloutPlan
from horae.model.expressions.template import compile_template
from horae.model.fields.kinds import Custom, Integer, as_given
from horae.model.fields.table import Field, Table
from horae.model.fields.values import KNOWN, a_text, an_object

MOST_VERSIONS = 10
MOST_BY = 512
_HOW = 'Send {"version": 7, "share": "10%"}, {"change": {...}, "share": "10%"} or {"versions": {"6": 90, "7": 10}}.'


def _read_by(value: Any, at: str) -> str:
    text = a_text(value or "", at, most=MOST_BY)
    compile_template(text, at, KNOWN)
    return text


def _read_weights(value: Any, at: str) -> dict[int, float]:
    given = an_object(value, at, _HOW)
    if not 1 <= len(given) <= MOST_VERSIONS:
        raise BadInput(f"{at} names {len(given)} versions.", f"Name 1 to {MOST_VERSIONS} versions.", field=at)
    weights: dict[int, float] = {}
    for name, weight in given.items():
        field = f"{at}.{name[:20]}"
        if not name.isdecimal() or len(name) > 9 or name != str(int(name)) or name == "0":
            raise BadInput(f"{name[:20]!r} is not a version.", _HOW, field=field)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1_000_000:
            raise BadInput(f"The weight of version {name} is not a number from 0 to 1000000.", _HOW, field=field)
        weights[int(name)] = float(weight)
    if not sum(weights.values()):
        raise BadInput("All weights are 0: nothing could run.", _HOW, field=at)
    return weights


def percent(value: Any, field: str) -> float:
    """Parse a share, "10%" or 10, into percent."""
    remedy = 'Write it as "10%", from 0 to 100.'
    text = value.strip().removesuffix("%") if isinstance(value, str) else value
    try:
        number = float(text) if not isinstance(text, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 100:
        raise BadInput(f"{field} {str(value)[:20]!r} is not a share.", remedy, field=field)
    return number


_SHARE = Annotated[str | float, Meta(description='A share, as "10%" or 10.')]
SHARE = Custom(percent, _SHARE, "str | float")
WEIGHTS = Custom(
    _read_weights, dict[str, float], "Mapping[int, float]", lambda shares: {str(v): w for v, w in shares.items()},
    option="pairs",
)  # fmt: skip
CHANGE = Custom(as_given, dict[str, Any], "Mapping[str, Any]")
BY = Custom(_read_by, str, "str")


class RolloutRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """The versions that new executions run: `version` or `change` with a `share`, or weights of `versions`."""

    version: Annotated[
        int | None, Field(Integer(1, 2**31 - 1, _HOW), "The version to try, unless a change creates it.")
    ] = None
    change: Annotated[
        dict[str, Any] | None,
        Field(CHANGE, "A JSON merge patch that creates the version to try.", example={"priority": 7}, flag=""),
    ] = None
    share: Annotated[
        float | None,
        Field(SHARE, "The share of new executions that run this version.", example="10%", metavar="PERCENT"),
    ] = None
    versions: Annotated[
        dict[int, float] | None,
        Field(
            WEIGHTS, "The weights of several versions, instead of a share.", example={"6": 90, "7": 10}, flag="",
        ),
    ] = None  # fmt: skip
    by: Annotated[
        str,
        Field(
            BY, "A template for a key: executions with equal keys run the same version.", example="${params.customer}",
            metavar="KEY",
        ),
    ] = ""  # fmt: skip
    abort_above: Annotated[
        float | None,
        Field(
            SHARE, "Abort the rollout when more than this share of a tried version's attempts fails.", example="5%",
            metavar="PERCENT",
        ),
    ] = None  # fmt: skip
    minimum: Annotated[
        int,
        Field(
            Integer(1, 1_000_000, "Give the number of attempts before a version is judged."),
            "The number of a version's attempts before it is judged.",
        ),
    ] = 20


ROLLOUT = Table(RolloutRequest, "A rollout")


def read_request(body: Any) -> RolloutRequest:
    """Parse a request; it must choose versions in exactly one way."""
    request: RolloutRequest = ROLLOUT.make(an_object(body, "body", _HOW))
    ways = [name for name in ("version", "change", "versions") if getattr(request, name) is not None]
    if len(ways) != 1:
        what = "names no version" if not ways else f"has both {ways[0]} and {ways[1]}"
        raise BadInput(f"This rollout {what}.", _HOW, field=ways[1] if ways else "version")
    if (request.share is None) == (request.versions is None):
        raise BadInput("`version` and `change` need a share; `versions` has weights instead.", _HOW, field="share")
    return request


def plan_of(request: RolloutRequest, current: int, candidate: int | None) -> RolloutPlan:
    """Return the plan of a request; `candidate` is the version created by its `change`, if it has one."""
    shares = request.versions
    if shares is None:
        version, share = candidate or request.version or 0, request.share or 0.0
        if version == current:
            raise BadInput(f"Version {version} is the present one.", "Name another version.", field="version")
        shares = {current: 100 - share, version: share}
    if not shares.keys() - {current}:
        raise BadInput("These weights name only the present version.", "Name the versions to try.", field="versions")
    return RolloutPlan(shares=shares, by=request.by, abort_above=request.abort_above, minimum=request.minimum)
