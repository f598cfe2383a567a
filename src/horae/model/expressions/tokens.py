"""The tokens of CEL: names, numbers, string literals and signs, each with its position."""

import re
from typing import NamedTuple

from horae.model.expressions.meter import EvaluationError

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
    |(?P<text>[rR]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<float>(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0[xX][0-9a-fA-F]+|\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_RAW = re.compile(r"""[rR](?=["'])""")
_ESCAPE = re.compile(
    r"""\\(?:([abfnrtv\\?"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))""",
    re.DOTALL,
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """One token of an expression."""

    kind: str
    text: str
    at: int


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of an expression, followed by an end token. Raises EvaluationError."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise EvaluationError(f"{source[at : at + 12]!r} at character {at + 1} is not valid in an expression")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, match[0], at))
        at = match.end()
    found.append(Token("end", "", at))
    return found


def string_value(token: Token) -> str:
    """Return the value of a string literal: without quotes, and with escapes replaced. Raises EvaluationError."""
    raw = _RAW.match(token.text) is not None
    quoted = token.text[1:] if raw else token.text
    inside = quoted[3:-3] if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else quoted[1:-1]
    return inside if raw or "\\" not in inside else _ESCAPE.sub(_unescaped, inside)


def _unescaped(match: re.Match[str]) -> str:
    plain, *codes, octal, other = match.groups()
    if plain:
        return _ESCAPED.get(plain, plain)
    if other is not None:
        raise EvaluationError(f"\\{other} is not a valid escape in a string")
    code = int(octal, 8) if octal else int(next(filter(None, codes)), 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise EvaluationError(f"{match[0]} is not a valid character")
    return chr(code)
