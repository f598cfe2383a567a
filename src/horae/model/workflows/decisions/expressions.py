"""Expressions of workflows: the steps they refer to, and the values they are computed from."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.base.instant import format_instant
from horae.model.base.paths import SKIPPED_TEXT, RemoteValue
from horae.model.executions.output.artifact import size_of_reference
from horae.model.expressions.meter import MOST_STEPS, limited_budget
from horae.model.expressions.template import Expression, Names, TemplateError, as_text, parts_of
from horae.model.fleet.protocol import MAX_RESULT, Failure
from horae.model.workflows.decisions.workflow import StepRow, WorkflowContext

KNOWN: Names = frozenset({"params", "steps", "execution", "callbacks"})
IN_FOREACH = KNOWN | {"item", "index"}
IN_LOOP = KNOWN | {"index"}
OF_ERROR = KNOWN | {"error"}  # for handlers and undo steps
OF_EVENT = KNOWN | {"event"}
_QUOTED = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_STEP_REFERENCE = re.compile(
    rf"(?:(?<![\w.])steps\s*(?:\.\s*(?P<name>[A-Za-z_]\w*)|\[\s*(?P<quoted>{_QUOTED})\s*\]|(?P<bare>)))|{SKIPPED_TEXT}"
)
CONDITION = 'Write a condition, as "${steps.extract.result.rows > 0}".'


def condition_of(text: Any, field: str, known: Names) -> Expression:
    """Compile a text that is a single boolean expression. Raises BadInput."""
    expression = whole_expression(text, field, known, CONDITION)
    value = True if expression.variables else constant_of(expression, field)
    if not isinstance(value, bool):
        raise BadInput(f"{field} is always {value!r}, not true or false.", CONDITION, field=field)
    return expression


def whole_expression(text: Any, field: str, known: Names, remedy: str) -> Expression:
    """Compile a text that consists of exactly one expression. Raises BadInput."""
    if isinstance(text, bool):
        text = "${true}" if text else "${false}"
    if not isinstance(text, str) or "${" not in text:
        raise BadInput(f"{field} is {text!r:.60}, which is not an expression.", remedy, field=field)
    parts = parts_of(text.strip(), field, known)
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        raise BadInput(f"{field} has text around its expression.", remedy, field=field)
    return parts[0]


def constant_of(expression: Expression, field: str) -> Any:
    """Evaluate an expression without variables. Raises BadInput."""
    try:
        with limited_budget(MOST_STEPS) as meter:
            return expression.value({}, meter)
    except TemplateError as error:
        raise BadInput(
            f"{field}: {error}.", "The expression has no variables, so it would always fail.", field=field
        ) from None


def expressions_in(value: Any, field: str, known: Names) -> Iterator[Expression]:
    """Compile and yield every expression in a text, or in the texts of a JSON value. Raises BadInput."""
    if isinstance(value, str):
        for part in parts_of(value, field, known) if "${" in value else ():
            if isinstance(part, Expression):
                if not part.variables:
                    constant_of(part, field)
                yield part
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from expressions_in(member, f"{field}.{name}", known)
    elif isinstance(value, list | tuple):
        for i, member in enumerate(value):
            yield from expressions_in(member, f"{field}[{i}]", known)


def steps_of(expression: Expression, field: str) -> set[str]:
    """Return the steps that an expression refers to. Raises BadInput for a use of `steps` that names no step."""
    named: set[str] = set()
    for found in _STEP_REFERENCE.finditer(expression.source):
        if found["name"]:
            named.add(found["name"])
        elif found["quoted"]:
            named.add(found["quoted"][1:-1])
        elif found["bare"] is not None:
            raise BadInput(
                f"${{{expression.source}}} does not say which step.",
                'Name it: "${steps.extract.result}", or "${steps["my-step"].result}".',
                field=field,
            )
    return named


def step_value(row: StepRow | None) -> dict[str, Any]:
    """Return the value that expressions see as `steps.NAME`; `row` is None for a step that has not been reached."""
    if row is None:
        return {"result": None, "state": "pending", "error": None}
    result = None if row.result is None else _value(row.result)
    return {"result": result, "state": row.state, "error": error_value(row.error, "")}


def _value(result: bytes) -> Any:
    """Decode a result. If it is stored in a file, return a placeholder that expressions cannot look into."""
    value = msgspec.json.decode(result)
    if result.startswith(_TOO_MUCH):
        return RemoteValue(value, value["$tooLarge"]["message"])
    size = size_of_reference(result)
    if size is None:
        return value
    return RemoteValue(
        value, f"has {size} bytes and is stored in a file; expressions read results of up to {MAX_RESULT} bytes"
    )


_TOO_MUCH = b'{"$tooLarge":'


def too_much(size: int, most: int) -> bytes:
    """Return the placeholder for the results of a foreach whose total size is too large."""
    message = f"has {size} bytes; expressions read at most {most} of all items together: let each return less"
    return msgspec.json.encode({"$tooLarge": {"size": size, "message": message}})


def error_value(failure: Failure | None, step: str) -> dict[str, Any] | None:
    """Return the value that expressions see as `error`; `step` is the step that failed, if it is to be named."""
    if failure is None:
        return None
    value = {"type": failure.type, "message": failure.message, "kind": failure.kind}
    return {**value, "step": step} if step else value


def scope_of(context: WorkflowContext, steps: Mapping[str, StepRow | None]) -> dict[str, Any]:
    """Return the variables that expressions of a workflow can use."""
    start, end = context.interval or (None, None)
    interval = None if start is None or end is None else {"start": format_instant(start), "end": format_instant(end)}
    return {
        "params": msgspec.json.decode(context.params) or {},
        "steps": {name: step_value(row) for name, row in steps.items()},
        "execution": {"id": str(context.id), "scheduledAt": format_instant(context.due_at), "interval": interval},
    }


def holds(expression: Expression, scope: Mapping[str, Any]) -> bool:
    """Return whether a condition holds. Raises TemplateError if it fails or does not give a boolean."""
    value = expression.value(scope)
    if not isinstance(value, bool):
        raise TemplateError(f"${{{expression.source}}} gave {as_text(value)[:60]!r}, neither true nor false")
    return value
