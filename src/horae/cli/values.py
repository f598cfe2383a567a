"""Values as people type them: name=value pairs, JSON, files, schedules."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from horae.errors import BadInput


def pairs(given: Iterable[str], flag: str) -> dict[str, str]:
    """`name=value` options as a table of texts."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise BadInput(f"{flag} {text}: there is no name=value in it.", f"Write it as {flag} name=value.")
        found[name] = value
    return found


def params(given: Iterable[str], document: str | None = None) -> dict[str, Any] | None:
    """`--param name=value` over `--params JSON`; a value that reads as JSON is JSON, any other is a text.

    None when neither was given.
    """
    named = {name: _loosely(value) for name, value in pairs(given, "--param").items()}
    if document is None:
        return named or None
    whole = read_json(document, "--params")
    if not isinstance(whole, dict):
        raise BadInput("--params is not a JSON object.", """Write it as --params '{"day": "2026-11-15"}'.""")
    return {**whole, **named}


def _loosely(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text


def read_json(text: str, flag: str) -> Any:
    """JSON given as an option: itself, or `@FILE`, or `-` for stdin."""
    source = Path(text[1:]).read_text() if text.startswith("@") else sys.stdin.read() if text == "-" else text
    try:
        return msgspec.json.decode(source)
    except msgspec.DecodeError as error:
        raise BadInput(
            f"{flag} is not valid JSON: {error}.", f"Quote it for the shell: {flag} '{{\"a\": 1}}'."
        ) from None


def read_documents(path: str) -> list[dict[str, Any]]:
    """Definitions in a YAML or JSON file (`-` is stdin): one, a list, several documents, or a list under `jobs`."""
    import yaml

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        documents = list(yaml.safe_load_all(text))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", "Check its name and rights.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid YAML: {error}", "Check the line it names.") from None
    found = [job for document in documents for job in _jobs(document, path)]
    if not found:
        raise BadInput(f"{path} defines no job.", "Write a mapping with name and command, python or http, or a list.")
    return found


def _jobs(document: Any, path: str) -> list[dict[str, Any]]:
    if document is None:
        return []
    if isinstance(document, dict) and "name" not in document and isinstance(document.get("jobs"), list):
        document = document["jobs"]
    found = document if isinstance(document, list) else [document]
    for job in found:
        if not isinstance(job, dict) or not isinstance(job.get("name"), str):
            raise BadInput(f"{path} holds a job without a name.", "Each job is a mapping with a name.", field="name")
    return found


def schedule(cron: str | None, every: str | None, at: str | None, tz: str | None) -> Any:
    """`--schedule`, `--every` or `--at` as the API takes it; None when none was given."""
    given = [value for value in (cron, every, at) if value is not None]
    if len(given) > 1:
        raise BadInput("Only one of --schedule, --every and --at can say when.", "Leave the others out.")
    if tz is not None and cron is None:
        raise BadInput("--tz says how to read --schedule, which is not there.", "Give --schedule, or no --tz.")
    if every is not None:
        return {"every": every}
    if at is not None:
        return {"at": at}
    return {"cron": cron, "timezone": tz} if tz is not None else cron
