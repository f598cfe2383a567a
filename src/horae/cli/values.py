"""Parsing of values on the command line: name=value pairs, JSON and files."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import msgspec

from horae.errors import BadInput
from horae.model.documents import yaml_text


def pairs(given: Iterable[str], flag: str) -> dict[str, str]:
    """Return `name=value` options as a dictionary of texts."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise BadInput(f"{flag} {text}: it is not of the form name=value.", f"Write it as {flag} name=value.")
        found[name] = value
    return found


def params(given: Iterable[str], document: str | None = None) -> dict[str, Any] | None:
    """Merge `--param name=value` over `--params JSON`; return None when neither is given.

    A value that is valid JSON is parsed; any other value is a text.
    """
    named = {name: loosely(value) for name, value in pairs(given, "--param").items()}
    if document is None:
        return named or None
    whole = read_json(document, "--params")
    if not isinstance(whole, dict):
        raise BadInput("--params is not a JSON object.", """Write it as --params '{"day": "2026-11-15"}'.""")
    return {**whole, **named}


def loosely(text: str) -> Any:
    """Return a value parsed as JSON, or the text itself if it is not JSON."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return text


def read_json(text: str, flag: str) -> Any:
    """Return JSON given as an option: the text itself, `@FILE`, or `-` for stdin."""
    source = read_text(text.removeprefix("@")) if text.startswith("@") or text == "-" else text
    try:
        return _decode(source)
    except msgspec.DecodeError as error:
        raise BadInput(
            f"{flag} is not valid JSON: {error}.", f"Quote it for the shell: {flag} '{{\"a\": 1}}'."
        ) from None


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise BadInput("The JSON value is nested too deeply.", "Nest its lists and objects less deeply.") from None


def read_text(path: str, remedy: str = "Write it in UTF-8.") -> str:
    """Return the text in a file or, if the path is `-`, in the input; `remedy` is for data that is not UTF-8."""
    name = "The input" if path == "-" else path
    try:
        data = opened_input().buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode()
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}.", "Check the file's name and permissions.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{name} is not text in UTF-8.", remedy) from None


def opened_input() -> TextIO:
    """Return the input; raise BadInput if it is closed."""
    if sys.stdin is None:
        raise BadInput("The input is closed.", "Start the command with an open input, or name a file.")
    return sys.stdin


def read_documents(path: str) -> list[dict[str, Any]]:
    """Return the definitions in a YAML or JSON file (`-` is stdin). They need no names.

    The file contains one definition, a list, several documents, or a list under `jobs`.
    """
    found = [job for document in _load(path) for job in _named(document, "jobs", path, needs_name=False)]
    if not found:
        raise BadInput(f"{path} defines no job.", "Write a mapping with name and command, python or http, or a list.")
    return found


Applied = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def read_applied(path: str) -> Applied:
    """Return the calendars, templates and jobs of a file.

    Calendars and templates are in the lists `calendars` and `templates`; a template may also be among the jobs, with
    `kind: template`.
    """
    documents = _load(path)
    calendars = [one for document in documents for one in _named(document, "calendars", path)]
    templates = [one for document in documents for one in _named(document, "templates", path)]
    jobs = [one for document in documents for one in _named(document, "jobs", path)]
    if not calendars and not templates and not jobs:
        remedy = "Write jobs as a list, or lists under `calendars`, `templates` and `jobs`."
        raise BadInput(f"{path} defines no job, no template and no calendar.", remedy)
    templates += [one for one in jobs if one.get("kind") == "template"]
    return calendars, templates, [one for one in jobs if one.get("kind") != "template"]


def read_one(path: str, what: str, form: str = "with its kind and fields") -> dict[str, Any]:
    """Return one mapping from a YAML or JSON file (`-` is stdin); `what` and `form` describe it in errors."""
    documents = [document for document in _load(path) if document is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise BadInput(f"{path} does not define one {what}.", f"Write one mapping {form}.")
    return documents[0]


def _load(path: str) -> list[Any]:
    text = read_text(path)
    try:
        return [document.value for document in yaml_text.read_documents(text, yaml_text.FILE)]
    except BadInput as error:
        raise BadInput(f"{path} is not valid YAML: {error.detail}", error.remedy) from None


_LISTS = ("jobs", "calendars", "templates")


def _named(document: Any, noun: str, path: str, *, needs_name: bool = True) -> list[dict[str, Any]]:
    """Return the list under `noun` in a document. A document without lists of nouns is a job or a list of jobs."""
    if document is None:
        return []
    if isinstance(document, dict) and "name" not in document and any(type(document.get(n)) is list for n in _LISTS):
        document = document.get(noun) or []
    elif noun != "jobs":
        return []
    found = document if isinstance(document, list) else [document]
    for one in found:
        if not isinstance(one, dict) or (needs_name and not isinstance(one.get("name"), str)):
            detail, remedy = (
                f"{path} contains a {noun[:-1]} without a name.",
                f"Each {noun[:-1]} is a mapping with a name.",
            )
            raise BadInput(detail, remedy, field="name")
    return found
