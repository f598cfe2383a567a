"""Texts with CEL expressions between `${` and `}`: `backup-${params.day}.tar`.

`$${` stands for a literal `${`. A text without `${` stays as it is and costs nothing. Elements of argv, values of the
environment, URLs, headers and bodies are templates, for example; a shell line never is.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from typing import Any

import msgspec

from horae.errors import BadInput, Costly, HoraeError
from horae.model.base.paths import MISSING, branches_of, null_above, plain_path, remote_path, value_at
from horae.model.executions.parcel import check_item
from horae.model.expressions.meter import (
    CHARACTERS_A_STEP,
    MOST_TEXT,
    SMALL_STEPS,
    EvaluationError,
    Meter,
    OverBudget,
    current_meter,
    limited_budget,
    spend_compilation,
)
from horae.model.expressions.meter import REMEDY as COSTS_LESS
from horae.model.expressions.program import Program

Scope = Mapping[str, Any]
Renderer = Callable[[Scope, Meter], Any]

Names = frozenset[str]

KNOWN: Names = frozenset({"params"})  # the default names that expressions may use
MOST_SHOWN = 120  # characters of an expression that a message shows
MOST_KEPT = 1024  # characters of a text whose compiled form is cached
_CLOSES = {"{": "}", "[": "]", "(": ")"}


class TemplateError(ValueError):
    """An expression could not be computed from these values."""


class TooCostly(TemplateError):
    """An expression takes more than `most` steps: all that were allowed, or that other expressions had left."""

    def __init__(self, message: str, most: int) -> None:
        super().__init__(message)
        self.most = most

    @property
    def is_own(self) -> bool:
        """True if it is too costly by itself, even without other expressions."""
        return self.most >= SMALL_STEPS


class Expression:
    """A compiled CEL expression."""

    def __init__(self, source: str, field: str, known: Names = KNOWN) -> None:
        self.source = source.strip()
        shown = self.source if len(self.source) <= MOST_SHOWN else f"{self.source[:MOST_SHOWN]}..."
        self.shown = f"${{{shown}}}"
        try:
            self._program = Program(self.source)
        except EvaluationError as error:
            raise BadInput(f"{self.shown} is not an expression: {error}.", _REMEDY, field=field) from None
        except OverBudget as error:
            raise Costly(f"{self.shown}: {error}.", COSTS_LESS, field=field) from None
        self.variables = self._program.variables
        self._refuse_unknown(field, known)
        self.path, self._branches = plain_path(self.source), branches_of(self.source)

    def _refuse_unknown(self, field: str, known: Names) -> None:
        """Refuse unknown names, for example variables of a shell, when the expression is defined."""
        unknown = sorted(self.variables - known)
        if unknown:
            raise BadInput(
                f"{self.shown} refers to {unknown[0]!r}; expressions here can use {', '.join(sorted(known))}.",
                "To use variables of the environment, write a shell line: `shell` of a command, or --shell on the"
                ' command line. "$${" stands for a literal "${".',
                field=field,
            )

    def value(self, scope: Scope, meter: Meter | None = None) -> Any:
        """Evaluate it within a budget. Errors raise TemplateError, which names the expression."""
        if self.path is not None and (found := value_at(scope, self.path)) is not MISSING:
            return found
        far = remote_path(scope, self._branches)
        if far is not None:
            raise TemplateError(f"{self.shown}: {far}")
        try:
            return self._program.value(scope, meter or current_meter())
        except OverBudget as error:
            raise TooCostly(f"{self.shown}: {error}. {COSTS_LESS.rstrip('.')}", error.most) from None
        except EvaluationError as error:
            null = null_above(scope, self._branches)
            reason = str(error) if null is None else f"{null} is null"
            raise TemplateError(f"{self.shown}: {reason}") from None

    def results(self) -> "Iterator[Expression]":
        """Yield the expressions between which its conditions choose; without a condition, the expression itself."""
        for program in self._program.results():
            result = copy(self)
            result._program, result.path = program, None
            yield result

    @property
    def kind_varies(self) -> bool:
        """Return whether the kind of the value may depend on the values of variables, not only on their kinds."""
        return self._program.kind_varies


class Template:
    """A text with expressions, compiled once and rendered often."""

    def __init__(self, parts: tuple[str | Expression, ...]) -> None:
        self.parts = parts

    def render(self, scope: Scope, meter: Meter | None = None) -> str:
        """Return the text with its expressions replaced by their values.

        Null becomes empty; lists and maps become JSON.
        """
        meter = meter or current_meter()
        return "".join([part if isinstance(part, str) else _text(part, scope, meter) for part in self.parts])

    def plain(self, scope: Scope) -> str | None:
        """Return the text, at no cost in steps, if all expressions are paths to short texts; otherwise None."""
        found: list[str] = []
        for part in self.parts:
            text = part if isinstance(part, str) else None if part.path is None else value_at(scope, part.path)
            if not isinstance(text, str) or len(text) > MOST_KEPT:
                return None
            found.append(text)
        return "".join(found)

    def value(self, scope: Scope, meter: Meter | None = None) -> Any:
        """Return the value itself if the whole text is one expression, otherwise the rendered text."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            return self.parts[0].value(scope, meter)
        return self.render(scope, meter)


def _text(part: Expression, scope: Scope, meter: Meter) -> str:
    text = as_text(part.value(scope, meter))
    _spend(meter, len(text))
    return text


def _spend(meter: Meter, characters: int) -> None:
    """Spend the steps for output characters. Raises TooCostly."""
    try:
        meter.take_text(characters)
    except OverBudget:
        most = meter.most * CHARACTERS_A_STEP
        raise TooCostly(f"the values of its expressions have over {most} characters together", meter.most) from None


_REMEDY = 'Write CEL between "${" and "}", as in "${params.day}"; "$${" stands for a literal "${".'


def compile_template(text: str, field: str = "template", known: Names = KNOWN) -> str | Template:
    """Compile a text; a text without expressions stays as it is. `known` are the names that expressions may use.

    Raises BadInput for a bad expression; the error names `field`.
    """
    if "${" not in text:
        return text
    spend_compilation(text)
    return _compiled(text, field, known) if len(text) <= MOST_KEPT else _compile(text, field, known)


def _compile(text: str, field: str, known: Names) -> str | Template:
    parts = tuple(_parts(text, field, known))
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    return Template(parts)


_compiled = lru_cache(maxsize=2048)(_compile)


def render(template: str | Template, scope: Scope) -> str:
    """Return the text of a compiled template."""
    return template if isinstance(template, str) else template.render(scope)


def render_small(template: str | Template, scope: Scope) -> str:
    """Return the text of a template that is rendered often, such as a key, within a small budget.

    Paths to short texts, the usual form of a key, cost no steps.
    """
    if isinstance(template, str):
        return template
    if (plain := template.plain(scope)) is not None:
        return plain
    with limited_budget(SMALL_STEPS) as meter:
        return template.render(scope, meter)


Compiled = str | Template


def _same(compiled: Compiled) -> Compiled:
    return compiled


def compile_tree(
    value: Any, field: str = "template", known: Names = KNOWN, fill: Callable[[Compiled], Compiled] = _same
) -> Any | Renderer:
    """Compile every text of a JSON value. Return the value if it is constant, otherwise a function that renders it.

    `fill` may replace parts of each compiled text.
    """
    if isinstance(value, str):
        compiled = fill(compile_template(value, field, known))
        return compiled if isinstance(compiled, str) else compiled.value
    if isinstance(value, dict):
        members = {key: compile_tree(member, f"{field}.{key}", known, fill) for key, member in value.items()}
        if any(map(callable, members.values())):
            return lambda scope, meter: {key: _member(member, scope, meter) for key, member in members.items()}
        return value if members == value else members
    if isinstance(value, list):
        elements = [compile_tree(element, f"{field}[{i}]", known, fill) for i, element in enumerate(value)]
        if any(map(callable, elements)):
            return lambda scope, meter: [_member(element, scope, meter) for element in elements]
        return value if elements == value else elements
    return value


def render_tree(compiled: Any, scope: Scope) -> Any:
    """Return the JSON value of the result of `compile_tree`, rendered within one budget."""
    return compiled(scope, current_meter()) if callable(compiled) else compiled


def _member(compiled: Any, scope: Scope, meter: Meter) -> Any:
    """Return the value of one member of a tree, and spend the steps to write it out."""
    if not callable(compiled):
        return compiled
    return charged(compiled(scope, meter), meter)


def charged(value: Any, meter: Meter) -> Any:
    """Spend the steps to write out a value, and return the value. Raises TooCostly."""
    if isinstance(value, str):
        _spend(meter, len(value))
    elif isinstance(value, list | dict):
        _spend(meter, len(msgspec.json.encode(value)))
    return value


def rendered_item(compiled: Any, scope: Scope) -> bytes:
    """Render a compiled tree as the params of an execution and return them as JSON. Raises TemplateError."""
    try:
        item = msgspec.json.encode(render_tree(compiled, scope))
        check_item(item)
    except TemplateError:
        raise
    except HoraeError as error:
        raise TemplateError(f"{error.detail.rstrip('.')}: {error.remedy.rstrip('.')}") from None
    except (TypeError, ValueError) as error:
        raise TemplateError(str(error)) from None
    return item


def as_text(value: Any) -> str:
    """Format a value as part of a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    encoded = msgspec.json.encode(value).decode()
    return encoded.strip('"') if not isinstance(value, list | dict) else encoded


def parts_of(text: str, field: str, known: Names = KNOWN) -> tuple[str | Expression, ...]:
    """Return the plain texts and the compiled expressions of a text."""
    spend_compilation(text)
    return tuple(_parts(text, field, known))


def _parts(text: str, field: str, known: Names) -> Iterator[str | Expression]:
    at = 0
    while (start := text.find("${", at)) >= 0:
        if start > at and text[start - 1] == "$":
            yield text[at : start - 1] + "${"
            at = start + 2
            continue
        if start > at:
            yield text[at:start]
        end = expression_end(text, start + 2)
        if end < 0:
            problem = f'"${{" without its "}}", or with more than {MOST_TEXT} characters before it, in {text!r:.200}.'
            raise BadInput(problem, _REMEDY, field=field)
        yield Expression(text[start + 2 : end], field, known)
        at = end + 1
    if at < len(text):
        yield text[at:]


def expression_end(text: str, at: int) -> int:
    """Return the end of the expression that begins here: its `}` outside quotes and brackets.

    Return -1 if it is too far away.
    """
    open_brackets: list[str] = []
    most = min(len(text), at + MOST_TEXT + 1)
    while at < most:
        char = text[at]
        if char in "\"'":
            at = _closing_quote(text, at, most)
            if at < 0:
                return -1
        elif char in _CLOSES:
            open_brackets.append(_CLOSES[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char == "}" and not open_brackets:
            return at
        at += 1
    return -1


def _closing_quote(text: str, at: int, most: int) -> int:
    quote, at = text[at], at + 1
    while at < most and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at if at < most else -1
