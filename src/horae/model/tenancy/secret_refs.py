"""References to secrets in definitions: `secret://db-password`, `secret://env/NAME`, `secret://file/NAME`.

A definition names secrets and never contains them. References are read from the definition's own text, never from the
output of its templates, so that a user who may only submit executions cannot read a secret by naming it in params.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from horae.errors import BadInput
from horae.model.expressions.template import Compiled, Template, compile_tree, parts_of

SCHEME = "secret://"
WORKERS = ("env", "file")  # kinds of references that a worker resolves itself, from its environment or its files
MOST_SECRETS = 64  # secrets in one definition
MOST_VALUE = 32 * 1024  # characters
TAKES_SECRETS = "secrets:"  # capability of workers that accept secrets and redact them in reports
SEALED = "sealed:"  # need of jobs with sealed params; every worker has the capability, because servers open the params
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?")
_REFERENCE = re.compile(rf"{SCHEME}((?:(?:{'|'.join(WORKERS)})/)?{NAME.pattern})")
_HOW = 'Write "secret://NAME", or "secret://env/NAME" and "secret://file/NAME" for secrets that the worker has.'
_NAMES = "Use 1 to 128 letters, digits, underscores and, between them, dots and dashes; env and file are taken."

Values = Mapping[str, str]  # values of secrets, by the part of their references after secret://


def check_secret_name(name: str) -> str:
    """Refuse a text that cannot name a secret of the store."""
    if not NAME.fullmatch(name) or name in WORKERS:
        raise BadInput(f"{name[:60]!r} cannot name a secret.", _NAMES, field="name")
    return name


def is_stored(reference: str) -> bool:
    """Return whether a reference means a secret of the store; workers provide the others."""
    return "/" not in reference


def references_in(text: str, field: str) -> list[str]:
    """Return the secrets to which a text of a definition refers. Refuses an invalid reference."""
    if SCHEME not in text:
        return []
    literal = [part for part in parts_of(text, field) if isinstance(part, str)]
    found = [name for part in literal for name in _REFERENCE.findall(part)]
    if len(found) != text.count(SCHEME) or any(name in WORKERS for name in found):
        said = f"{field} has a {SCHEME} without a name after it; expressions and params cannot give the name."
        raise BadInput(said, _HOW, field=field)
    return found


def references_in_all(named: Iterable[str], texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the secrets that a definition names and those to which its texts refer, without duplicates."""
    found = [name.removeprefix(SCHEME) for name in named]
    for text, field in texts:
        found += references_in(text, field)
    return tuple(dict.fromkeys(found))


def read_secrets(value: Any) -> tuple[str, ...]:
    """Read the field `secrets`: names with or without `secret://`. Return them with it, as they are stored."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise BadInput("secrets is not a list of names.", 'Write ["db-password"].', field="secrets")
    for name in value:
        plain = name.removeprefix(SCHEME)
        if not _REFERENCE.fullmatch(SCHEME + plain) or plain in WORKERS:
            raise BadInput(f"{name[:60]!r} cannot name a secret.", _HOW, field="secrets")
    return tuple(dict.fromkeys(SCHEME + name.removeprefix(SCHEME) for name in value))


def texts_in(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Yield every text in a JSON value, with its path."""
    if isinstance(value, str):
        yield value, field
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from texts_in(member, f"{field}.{name}")
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from texts_in(element, f"{field}[{i}]")


def fill(compiled: Compiled, values: Values) -> Compiled:
    """Replace the references in a text by values. The later output of its expressions is not searched."""
    return _replaced(compiled, lambda name, is_first: values[name])


def fill_url(compiled: Compiled, values: Values) -> Compiled:
    """Replace the references in a URL.

    Values are percent-encoded, except at the beginning, so that they cannot change the URL's structure.
    """
    return _replaced(compiled, lambda name, is_first: values[name] if is_first else quote(values[name], safe=""))


def fill_tree(value: Any, field: str, values: Values) -> Any:
    """Compile a JSON value with its references replaced."""
    return compile_tree(value, field, fill=lambda compiled: fill(compiled, values))


def _replaced(compiled: Compiled, value_of: Callable[[str, bool], str]) -> Compiled:
    def replace(text: str, first: bool) -> str:
        return _REFERENCE.sub(lambda found: value_of(found[1], first and found.start() == 0), text)

    if isinstance(compiled, str):
        return replace(compiled, True)
    parts = enumerate(compiled.parts)
    return Template(tuple(replace(part, i == 0) if isinstance(part, str) else part for i, part in parts))
