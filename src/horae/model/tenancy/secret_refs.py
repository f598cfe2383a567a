"""References to secrets in definitions: `secret://db-password`, `secret://env/NAME`, `secret://file/NAME`.

A definition names secrets and never holds them. References are read from what the definition itself says, never from
what its templates make of params: whoever may only submit executions reads no secret by naming it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from horae.errors import BadInput
from horae.model.expressions.template import Compiled, Template, compile_tree, parts_of

SCHEME = "secret://"
WORKERS = ("env", "file")  # providers that workers ask themselves
MOST_SECRETS = 64  # in one definition
MOST_VALUE = 32 * 1024  # characters
TAKES_SECRETS = "secrets:"  # offered by workers that take secrets and keep them out of what they tell
SEALED = "sealed:"  # its params are sealed; every worker offers to take them, and servers open them
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?")
_REFERENCE = re.compile(rf"{SCHEME}((?:(?:{'|'.join(WORKERS)})/)?{NAME.pattern})")
_HOW = 'Write "secret://NAME", or "secret://env/NAME" and "secret://file/NAME" for what the worker has.'
_NAMES = "Use 1 to 128 letters, digits, underscores and, between them, dots and dashes; env and file are taken."

Values = Mapping[str, str]  # by what follows secret://


def check_secret_name(name: str) -> str:
    """Refuse what cannot name a secret of the store."""
    if not NAME.fullmatch(name) or name in WORKERS:
        raise BadInput(f"{name[:60]!r} cannot name a secret.", _NAMES, field="name")
    return name


def is_stored(reference: str) -> bool:
    """Whether a reference means a secret of the store; workers provide the others."""
    return "/" not in reference


def references_in(text: str, field: str) -> list[str]:
    """The secrets that a text of a definition refers to. Refuses what looks like a reference and is none."""
    if SCHEME not in text:
        return []
    literal = [part for part in parts_of(text, field) if isinstance(part, str)]
    found = [name for part in literal for name in _REFERENCE.findall(part)]
    if len(found) != text.count(SCHEME) or any(name in WORKERS for name in found):
        said = f"{field} has a {SCHEME} that names no secret by itself; expressions and params cannot name one."
        raise BadInput(said, _HOW, field=field)
    return found


def references_in_all(named: Iterable[str], texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The secrets that a definition names, and those that its texts refer to, each once."""
    found = [name.removeprefix(SCHEME) for name in named]
    for text, field in texts:
        found += references_in(text, field)
    return tuple(dict.fromkeys(found))


def read_secrets(value: Any) -> tuple[str, ...]:
    """The field `secrets`: names, with or without their scheme; kept with it."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise BadInput("secrets is not a list of names.", 'Write ["db-password"].', field="secrets")
    for name in value:
        plain = name.removeprefix(SCHEME)
        if not _REFERENCE.fullmatch(SCHEME + plain) or plain in WORKERS:
            raise BadInput(f"{name[:60]!r} cannot name a secret.", _HOW, field="secrets")
    return tuple(dict.fromkeys(SCHEME + name.removeprefix(SCHEME) for name in value))


def texts_in(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Every text within a JSON value, with its place."""
    if isinstance(value, str):
        yield value, field
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from texts_in(member, f"{field}.{name}")
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from texts_in(element, f"{field}[{i}]")


def filled(compiled: Compiled, values: Values) -> Compiled:
    """A text with its references replaced by values. What its expressions give later is left as it is."""
    return _replaced(compiled, lambda name, is_first: values[name])


def filled_url(compiled: Compiled, values: Values) -> Compiled:
    """The same for a URL: a value that is not its beginning is encoded, and cannot change which parts the URL has."""
    return _replaced(compiled, lambda name, is_first: values[name] if is_first else quote(values[name], safe=""))


def filled_tree(value: Any, field: str, values: Values) -> Any:
    """A JSON value compiled with its references replaced."""
    return compile_tree(value, field, fill=lambda compiled: filled(compiled, values))


def _replaced(compiled: Compiled, value_of: Callable[[str, bool], str]) -> Compiled:
    def replace(text: str, first: bool) -> str:
        return _REFERENCE.sub(lambda found: value_of(found[1], first and found.start() == 0), text)

    if isinstance(compiled, str):
        return replace(compiled, True)
    parts = enumerate(compiled.parts)
    return Template(tuple(replace(part, i == 0) if isinstance(part, str) else part for i, part in parts))
