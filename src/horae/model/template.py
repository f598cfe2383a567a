"""Texts with CEL expressions between `${` and `}`: `backup-${params.day}.tar`.

`$${` stands for a literal `${`. A text without `${` is itself and costs nothing. Templates fill argv elements,
environment values, URLs, headers and bodies; a shell line is never a template.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from horae.errors import BadInput, HoraeError
from horae.model.parcel import check_item
from horae.model.paths import MISSING, branches_of, far_at, null_above, plain_path, pruned, value_at

Scope = Mapping[str, Any]
Renderer = Callable[[Scope], Any]

Names = frozenset[str]

KNOWN: Names = frozenset({"params"})  # what expressions can speak of where nothing else is said
_OWN = re.compile(r"\.\s*(map|filter|all|exists|exists_one)\s*\(\s*(\w+)\s*,")  # names that a macro gives to elements
_CLOSES = {"{": "}", "[": "]", "(": ")"}


class TemplateError(ValueError):
    """An expression could not be computed from these values."""


class Expression:
    """One compiled CEL expression."""

    def __init__(self, source: str, field: str, known: Names = KNOWN) -> None:
        import cel

        self.source = source.strip()
        try:
            self.program = cel.compile(self.source)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise BadInput(f"${{{self.source}}} is not an expression: {reason}", _REMEDY, field=field) from None
        self._refuse_unknown(field, known)
        self._path, self._branches = plain_path(self.source), branches_of(self.source)

    def _refuse_unknown(self, field: str, known: Names) -> None:
        """What nothing will ever define, as a variable of the shell, is refused before it runs."""
        own = {name for _, name in _OWN.findall(self.source)}
        unknown = sorted(set(self.program.variables()) - known - own)
        if unknown:
            raise BadInput(
                f"${{{self.source}}} speaks of {unknown[0]!r}; an expression knows {', '.join(sorted(known))}.",
                "A shell line knows the environment's variables: `shell` of a command, --shell on the command line;"
                ' "$${" stands for a literal "${".',
                field=field,
            )

    def value(self, scope: Scope) -> Any:
        """Compute it; whatever is wrong with the values is a TemplateError that names the expression."""
        if self._path is not None and (found := value_at(scope, self._path)) is not MISSING:
            return found
        far = far_at(scope, self._branches)
        if far is not None:
            raise TemplateError(f"${{{self.source}}}: {far}")
        try:
            return self.program.execute(pruned(scope, self._branches))
        except KeyError as error:
            raise TemplateError(f"${{{self.source}}}: there is no {error.args[0]!r}") from None
        except Exception as error:
            null = null_above(scope, self._branches)
            reason = str(error).rstrip(".") if null is None else f"{null} is null"
            raise TemplateError(f"${{{self.source}}}: {reason}") from None


class Template:
    """A text with expressions in it, compiled once and rendered often."""

    def __init__(self, parts: tuple[str | Expression, ...]) -> None:
        self.parts = parts

    def render(self, scope: Scope) -> str:
        """The text with every expression replaced by its value; null becomes nothing, lists and maps become JSON."""
        return "".join(part if isinstance(part, str) else as_text(part.value(scope)) for part in self.parts)

    def value(self, scope: Scope) -> Any:
        """The value itself when the whole text is one expression, else the rendered text."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            return self.parts[0].value(scope)
        return self.render(scope)


_REMEDY = 'Write CEL between "${" and "}", as in "${params.day}"; "$${" stands for a literal "${".'


@lru_cache(maxsize=4096)
def compile_template(text: str, field: str = "template", known: Names = KNOWN) -> str | Template:
    """Compile a text; one without expressions is itself. A bad expression is a BadInput that names `field`.

    `known` are the names that its expressions may speak of.
    """
    if "${" not in text:
        return text
    parts = parts_of(text, field, known)
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    return Template(parts)


def render(template: str | Template, scope: Scope) -> str:
    """The text of a compiled template."""
    return template if isinstance(template, str) else template.render(scope)


Compiled = str | Template


def _same(compiled: Compiled) -> Compiled:
    return compiled


def compile_tree(
    value: Any, field: str = "template", known: Names = KNOWN, fill: Callable[[Compiled], Compiled] = _same
) -> Any | Renderer:
    """Compile every text of a JSON value; the answer is a value, or a function from scope to value.

    `fill` may replace parts of a compiled text.
    """
    if isinstance(value, str):
        compiled = fill(compile_template(value, field, known))
        return compiled if isinstance(compiled, str) else compiled.value
    if isinstance(value, dict):
        members = {key: compile_tree(member, f"{field}.{key}", known, fill) for key, member in value.items()}
        if any(map(callable, members.values())):
            return lambda scope: {key: render_tree(member, scope) for key, member in members.items()}
        return value if members == value else members
    if isinstance(value, list):
        elements = [compile_tree(element, f"{field}[{i}]", known, fill) for i, element in enumerate(value)]
        if any(map(callable, elements)):
            return lambda scope: [render_tree(element, scope) for element in elements]
        return value if elements == value else elements
    return value


def render_tree(compiled: Any, scope: Scope) -> Any:
    """The JSON value a compiled tree stands for."""
    return compiled(scope) if callable(compiled) else compiled


def rendered_item(compiled: Any, scope: Scope) -> bytes:
    """The params of an execution that a compiled tree stands for, as JSON. Raises TemplateError."""
    try:
        item = msgspec.json.encode(render_tree(compiled, scope))
        check_item(item)
    except HoraeError as error:
        raise TemplateError(f"{error.detail.rstrip('.')}: {error.remedy.rstrip('.')}") from None
    except (TypeError, ValueError) as error:
        raise TemplateError(str(error)) from None
    return item


def as_text(value: Any) -> str:
    """How a value reads inside a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    encoded = msgspec.json.encode(value).decode()
    return encoded.strip('"') if not isinstance(value, list | dict) else encoded


def parts_of(text: str, field: str, known: Names = KNOWN) -> tuple[str | Expression, ...]:
    """The plain texts and the compiled expressions that a text consists of."""
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
            raise BadInput(f'"${{" without its "}}" in {text!r}.', _REMEDY, field=field)
        yield Expression(text[start + 2 : end], field, known)
        at = end + 1
    if at < len(text):
        yield text[at:]


def expression_end(text: str, at: int) -> int:
    """Where the expression that begins here ends: its `}` outside quotes and brackets, or -1."""
    open_brackets: list[str] = []
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _closing_quote(text, at)
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


def _closing_quote(text: str, at: int) -> int:
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at if at < len(text) else -1
