"""docs/worker-protocol.md, compared with the program: every field is documented, and every example fits its schema."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from horae.engine.fleet.backstop import SLACK
from horae.model.base.duration import LONGEST
from horae.model.base.instant import END_OF_RANGE
from horae.model.definitions.job import Spec
from horae.model.documents.nesting import MAX_NESTING
from horae.model.executions import execution
from horae.model.executions.parcel import MAX_DEPTH
from horae.model.fleet import protocol, submit
from horae.server.openapi import build
from horae.server.reading.schemas import protocol_document
from horae.server.routes.table import ROUTES
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "worker-protocol.md").read_text()
EXAMPLES = re.findall(r"<!-- schema (\w+) -->\n```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
BODIES = [
    value
    for module in (protocol, submit)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, protocol.Wire)
]


def strict(schema: Any) -> Any:
    """Return the same schema, with unknown fields forbidden."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {**{name: strict(part) for name, part in schema.items()}, **closed}


@pytest.fixture(scope="module")
def components() -> dict[str, Any]:
    return strict(build(ROUTES)["components"])


@pytest.mark.parametrize(("kind", "example"), EXAMPLES)
def test_every_example_fits_its_schema(components, kind, example):
    schema = {"$ref": f"#/components/schemas/{kind}", "components": components}
    jsonschema_rs.validator_for(schema).validate(json.loads(example))


def test_there_is_an_example_of_every_body():
    shown = {kind for kind, _ in EXAMPLES}
    again = {"ReattachRequest", "ReattachAnswer"}
    talk = {"RegisterRequest", "RegisterAnswer", "Exchange", "ExchangeAnswer", "ChildSubmit"}
    assert shown == {*talk, "RememberRequest", "RememberAnswer", "KnownSteps", "AwaitRequest", "AwaitAnswer", *again}


@pytest.mark.parametrize("body", [body for body in BODIES if body is not protocol.Wire], ids=lambda body: body.__name__)
def test_every_field_is_documented(body):
    fields = {field.encode_name for field in msgspec.structs.fields(body)}
    assert [field for field in fields if f"`{field}`" not in TEXT and f'"{field}"' not in TEXT] == []


def test_extras_and_definitions_are_documented():
    extras = {field.encode_name for field in msgspec.structs.fields(execution.Extra)}
    assert [field for field in extras if f"`{field}`" not in TEXT] == []
    used = {"name", "task", "params", "timeout", "grace", "delivery", "retry", "tags"}
    assert used <= {field.encode_name for field in msgspec.structs.fields(Spec)}
    assert [field for field in used if f"`{field}`" not in TEXT] == []


@pytest.mark.parametrize("kinds", [protocol.OutcomeKind, protocol.RequestKind])
def test_every_kind_is_documented(kinds):
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert set(kinds.__args__) <= rows


def test_every_route_of_a_session_is_documented():
    routes = [route for route in ROUTES if route.tag == "sessions"]
    paths = {f"{route.method} {route.path.replace('{id}', '{sessionId}')}" for route in routes}
    assert [path for path in paths if path not in TEXT] == []


def instant_of_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


def test_numbers_match_the_program():
    assert f"`protocol` is {protocol.PROTOCOL}." in TEXT
    assert f"| channels of a session | {protocol.CHANNELS} |" in TEXT
    assert f"| submissions in one call | {protocol.MOST_CHILDREN} |" in TEXT
    assert f"| the name of a `call` | 1 to {protocol.MAX_CALL} characters |" in TEXT
    assert (instant_of_year(2201), 36_525 * 86_400 * 1_000_000) == (END_OF_RANGE, LONGEST)
    assert f"slower than the worker's: {SLACK // 1_000_000} seconds after" in TEXT
    assert f"| progress | {protocol.MAX_PROGRESS} characters" in TEXT
    assert f"| nesting | {MAX_NESTING} levels of a result or a step's result, {MAX_DEPTH} of" in TEXT
    assert protocol.MAX_EXCHANGE == 512 * 1024
    assert (protocol.MAX_INLINE_RESULT, protocol.MAX_RESULT) == (64 * 1024, 1024 * 1024)


def test_the_schemas_of_the_protocol_accept_every_example_and_describe_raw_values():
    document = json.loads(protocol_document())
    for kind, example in EXAMPLES:
        schema = {"$ref": f"#/$defs/{kind}", "$defs": document["$defs"]}
        jsonschema_rs.validator_for(schema).validate(json.loads(example))
    defs = document["$defs"]
    assert defs["ExchangeAnswer"]["properties"]["jobs"]["additionalProperties"] == {"$ref": "#/$defs/Definition"}
    assert defs["Grant"]["properties"]["extras"]["items"] == {"$ref": "#/$defs/GrantExtra"}
    kinds = defs["Definition"]["properties"]["task"]["discriminator"]["mapping"]
    assert {"python", "command", "http"} <= kinds.keys()
    assert defs["ReportedOutcome"]["additionalProperties"] is False
    assert "additionalProperties" not in defs["ExchangeAnswer"]
    assert defs["Exchange"]["properties"]["channel"]["maximum"] == protocol.CHANNELS - 1
    assert defs["ReportedFailure"]["properties"]["kind"]["enum"] == ["error", "platform", "timeout"]
    assert defs["RegisterRequest"]["properties"]["concurrency"] == {
        "type": "integer", "minimum": 1, "maximum": 100_000, "default": 1,
    }  # fmt: skip
