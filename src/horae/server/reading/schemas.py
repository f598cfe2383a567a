"""JSON schemas of everything sent over HTTP. They come from msgspec, which also decodes the bodies."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec
from msgspec import _json_schema as generator

from horae.model.definitions.job import Spec
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import (
    Answer,
    Await,
    Awaited,
    Exchange,
    KnownSteps,
    Reattach,
    Reattached,
    Register,
    Registered,
    Remember,
    Remembered,
)
from horae.model.fleet.submit import ChildSubmit
from horae.server.reading.worker_bodies import strict_type
from horae.server.reply import encode
from horae.version import __version__

Document = dict[str, Any]

UNWRITABLE = "(raw)"
# Names in the documents that differ from the class names. The documents have all layers in one list, so their names say
# what a module says in the code. `Outcome` has a field `outcome`, and generators of clients would confuse the two.
RENAMED = {
    "Answer": "ExchangeAnswer",
    "Await": "AwaitRequest",
    "Awaited": "AwaitAnswer",
    "Call": "StepJob",
    "CircuitOpenBody": "CircuitOpening",
    "ExecutionBody": "NewExecution",
    "Extra": "GrantExtra",
    "Function": "WorkerFunction",
    "Outcome": "ReportedOutcome",
    "ProblemDocument": "Problem",
    "Progress": "ItemProgress",
    "Range": "ItemRange",
    "Register": "RegisterRequest",
    "Reattach": "ReattachRequest",
    "Reattached": "ReattachAnswer",
    "Registered": "RegisterAnswer",
    "Remember": "RememberRequest",
    "Remembered": "RememberAnswer",
    "Request": "ItemRequest",
    "Sleep": "SleepWait",
    "Spec": "Definition",
    "Started": "StartedItems",
    "StepRemembered": "RememberedStep",
    "Submit": "Submission",
    "Unique": "UniqueKey",
}
SENT_BY_WORKERS = (Register, Exchange, Reattach, Remember, Await, ChildSubmit)
SENT_BY_SERVERS = (Registered, Answer, Reattached, Remembered, KnownSteps, Awaited)
RAW_TYPES = (Spec, Extra)  # types that answers carry as raw JSON


def schemas_of(types: Sequence[Any], prefix: str) -> tuple[list[Document], Document]:
    """Return the schema of each type, and the components to which these schemas refer by `prefix` and a name."""
    with _unwritable_defaults_marked():
        schemas, components = msgspec.json.schema_components(types, ref_template=prefix + "{name}")
    for component in components.values():
        for schema in component.get("properties", {}).values():
            if schema.get("default") == UNWRITABLE:
                del schema["default"]
    if {"Answer", "Spec", "Extra"} <= components.keys():
        components["Answer"]["properties"]["jobs"]["additionalProperties"] = {"$ref": f"{prefix}Spec"}
        components["Grant"]["properties"]["extras"] |= {"type": "array", "items": {"$ref": f"{prefix}Extra"}}
    names = {name: _short(name) for name in components}
    mend = _mender({prefix + name: prefix + short for name, short in names.items()})
    return [mend(one) for one in schemas], {
        short: {**mend(components[name]), **({"title": short} if "title" in components[name] else {})}
        for name, short in names.items()
    }


def _short(name: str) -> str:
    """Return a component's short name. msgspec prefixes types of equal names with their modules: one word suffices."""
    module, _, last = name.rpartition(".")
    words = module.rpartition(".")[2].removesuffix("_view").split("_")
    return "".join(word.capitalize() for word in words) + RENAMED.get(last, last)


def _mender(renamed: dict[str, str]) -> Callable[[Any], Any]:

    def mend(part: Any) -> Any:
        """Return a schema with renamed components, in a form that generators of clients can read."""
        if isinstance(part, list):
            return [mend(one) for one in part]
        if not isinstance(part, dict):
            return renamed.get(part, part) if isinstance(part, str) else part
        part = dict(part)
        if "prefixItems" in part and part.get("items") is False:
            del part["items"]  # `maxItems` says it already
            if all(one == part["prefixItems"][0] for one in part["prefixItems"]):  # a pair of numbers
                part["items"] = part.pop("prefixItems")[0]
        elif part.get("type") == "array":
            part.setdefault("items", {})
        if part.get("enum") == [True]:
            del part["enum"]
            part["type"] = "boolean"
        return {name: mend(one) for name, one in part.items()}

    return mend


@contextmanager
def _unwritable_defaults_marked() -> Iterator[None]:
    """Let msgspec's generator mark a default that is raw JSON; otherwise it would refuse the whole type."""
    names = vars(generator)
    write = names["to_builtins"]

    def mark(value: Any, **options: Any) -> Any:
        return UNWRITABLE if isinstance(value, msgspec.Raw) else write(value, **options)

    names["to_builtins"] = mark
    try:
        yield
    finally:
        names["to_builtins"] = write


@cache
def protocol_document() -> bytes:
    """Return the schemas of the worker protocol as one encoded document."""
    return encode(protocol_schema())


def protocol_schema() -> Document:
    """Return the schema of every body of the worker protocol.

    The schemas of bodies that workers send allow no unknown fields, like servers with `Horae-Strict: 1`.
    """
    _, components = schemas_of(
        [*(strict_type(body_type) for body_type in SENT_BY_WORKERS), *SENT_BY_SERVERS, *RAW_TYPES], "#/$defs/"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:horae:worker-protocol",
        "title": "Horae's worker protocol",
        "description": "The messages between workers and servers. Validate a body against one of $defs.",
        "version": __version__,
        "$defs": components,
    }
