"""Checks of params: they must be JSON objects within bounds, and fit the schema of their job.

The params of steps are checked when the workflow is defined, as far as they are known before anything runs.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any
from uuid import UUID

import msgspec

from horae.errors import BadInput, HoraeError
from horae.model.definitions.job import Job, Spec
from horae.model.documents.schema import CheckBudget, ParamsCheck, Problem, check_schema
from horae.model.documents.schema_cost import MOST_UNITS
from horae.model.executions.parcel import check_item, decode_if_small
from horae.model.workflows.decisions.expressions import IN_FOREACH, OF_ERROR, whole_expression
from horae.model.workflows.decisions.kinds import KINDS, refuse_kind
from horae.model.workflows.decisions.values import Call

MOST_VALIDATORS = 1000
TOGETHER = 500  # items that are decoded together
A_TURN = MOST_UNITS // 4  # units of checking work after which other requests get their turn
_NOT_TEXTS = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a list"}
_KNOWN = IN_FOREACH | OF_ERROR
# Keywords of JSON Schema that concern all members of an object together.
_OF_WHOLE = {
    *("required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames", "const", "enum"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef"),
}
_WHOLE = 'An expression without text around it keeps the type of its value: "${steps.extract.result.rows}".'


class ParamsChecker:
    """Checks items against their job's schema. Compiled schemas are cached, because a version never changes."""

    def __init__(self) -> None:
        self._fits: OrderedDict[tuple[UUID, int], ParamsCheck] = OrderedDict()
        self._spent = 0  # units since the last turn of other requests
        self._turns = asyncio.Lock()  # submissions go on one at a time, and other requests run in between

    def check(self, item: bytes, job: Job, spent: CheckBudget | None = None) -> None:
        """Refuse an item that cannot be the params of an execution of this job."""
        check_item(item)
        if job.spec.schema is None:
            return
        fit = self._fit(job)
        units = fit.units(item)
        self._spent += units
        if spent is not None:
            spent.take(units)
        problem = fit.problem(item, units)
        if problem is not None:
            where = ".".join(["params", *problem.path])
            detail = f'{where} of job "{job.spec.name}": {problem.message}.'
            raise BadInput(detail, "See the job's `schema`.", field=where)

    async def yield_turn(self) -> None:
        """Give other requests their turn if the checks since the last one took long."""
        if self._spent <= A_TURN and not self._turns.locked():
            return
        async with self._turns:
            if self._spent > A_TURN:
                self._spent = 0
                await asyncio.sleep(0)

    async def check_all(self, items: Sequence[bytes], job: Job) -> dict[int, HoraeError]:
        """Return the errors of items by index. A group of items without errors usually needs only one quick check."""
        wrong: dict[int, HoraeError] = {}
        for begin in range(0, len(items), TOGETHER):
            group = items[begin : begin + TOGETHER]
            if not self._all_fit(group, job):
                for i, item in enumerate(group, begin):
                    await self.yield_turn()
                    try:
                        self.check(bytes(item), job)
                    except HoraeError as error:
                        wrong[i] = error
            await self.yield_turn()
        return wrong

    def _all_fit(self, items: Sequence[bytes], job: Job) -> bool:
        """Return whether all items fit, as far as a quick check can tell."""
        values = decode_if_small(items)
        if values is None or job.spec.schema is None:
            return values is not None
        fit = self._fit(job)
        units = [fit.units(bytes(item)) for item in items]
        if sum(units) > MOST_UNITS:
            return False
        self._spent += sum(units)
        return all(map(fit.fits, values, units))

    def _fit(self, job: Job) -> ParamsCheck:
        found = self._fits.get((job.id, job.version))
        if found is None:
            found = self._fits[job.id, job.version] = ParamsCheck(job.spec)
            if len(self._fits) > MOST_VALIDATORS:
                self._fits.popitem(last=False)
        return found


def check_params(call: Call, spec: Spec, *, each: bool) -> None:
    """Refuse params of a step that cannot fit the schema of its job.

    `each` says that the step is a foreach: its items are the params, unless the step gives params.
    """
    if spec.schema is None or spec.batch is not None or (call.params is None and (each or call.inline)):
        return  # the params of a batch are checked when its first item starts
    given, schema = call.params or {}, spec.schema
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in given and name not in spec.params:
            remedy = f'Add "params": {{"{name}": ...}}.'
            raise BadInput(f'params lacks "{name}", which job "{spec.name}" needs.', remedy, field="params")
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        for name in given:
            if name not in known:
                near = get_close_matches(name, list(known), n=1)
                remedy = f'Did you mean "{near[0]}"?' if near else f"Its parameters are: {', '.join(known) or 'none'}."
                detail = f'Job "{spec.name}" has no parameter "{name[:60]}".'
                raise BadInput(detail, remedy, field=f"params.{name[:60]}")
    problem = _problem(given, spec)
    if problem is not None:
        where = ".".join(["params", *problem.path])
        raise BadInput(f'{where} of job "{spec.name}": {problem.message}.', "See the job's `schema`.", field=where)
    _check_expressions({name: value for name, value in given.items() if name in known}, known, spec.name)


def _problem(given: dict[str, Any], spec: Spec) -> Problem | None:
    """Return the first error of params. If some are still unknown, each of the others is checked by itself."""
    if not _has_expression(given):
        return ParamsCheck(spec).problem(msgspec.json.encode(given))
    literal = {name: value for name, value in given.items() if not _has_expression(value)}
    apart = {key: part for key, part in (spec.schema or {}).items() if key not in _OF_WHOLE}
    return check_schema(apart, "schema").problem(literal)


def _check_expressions(given: dict[str, Any], known: dict[str, Any], job: str) -> None:
    for name, value in given.items():
        wanted = known[name]
        if not isinstance(value, str) or "${" not in value or not isinstance(wanted, dict):
            continue
        word = _NOT_TEXTS.get(str(wanted.get("type")))
        if word is not None and _is_mixed(value):
            detail = f'params.{name} is always a text, but job "{job}" needs {word}.'
            raise BadInput(detail, _WHOLE, field=f"params.{name}")
        if not _is_mixed(value):
            expression = whole_expression(value, f"params.{name}", _KNOWN, _WHOLE)
            refuse_kind(expression, f"params.{name}", _kinds(wanted.get("type")), f'See the `schema` of job "{job}".')


def _kinds(declared: Any) -> list[str]:
    """Return the kinds that a type of a schema allows; all kinds if there is none."""
    named = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) and declared else KINDS
    if "number" in named or "integer" in named:
        return [*named, "integer", "number"]  # 4.0 is an integer in JSON Schema
    return list(named)


def _has_expression(value: Any) -> bool:
    if isinstance(value, str):
        return "${" in value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_expression, members))


def _is_mixed(text: str) -> bool:
    """Return whether a text contains an expression together with other text, or several expressions."""
    stripped = text.strip()
    return "${" in text and not (stripped.startswith("${") and stripped.endswith("}") and stripped.count("${") == 1)
