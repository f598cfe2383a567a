"""The OpenAPI document describes the server: complete by comparison, correct by random requests."""

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, system_env
from horae.server.openapi import build
from horae.server.route import Route
from horae.server.routes.table import ROUTES
from horae.server.run import serve
from tests.server.conftest import Api
from tests.server.random_requests import prepare, schemathesis

DOCUMENT: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(build(ROUTES)))

# A stream does not end, a backup copies the store; revoking keys and signing out would end the run; dropping the
# session would empty its routes.
LEFT_OUT = (
    "stream.follow",
    "backup.read",
    "keys.revoke",
    "me.sign-out",
    "sessions.close",
    "workers.drain",
    "jobs.delete",
)
# `make test` tries a third of the rest, always the same, which takes half a minute; `make prove` tries them all.
SHARE = 1 if os.environ.get("HORAE_PROVE") else 3
NOT_TRIED = tuple(
    route.name for route in ROUTES if route.name in LEFT_OUT or zlib.crc32(route.name.encode()) % SHARE
)  # fmt: skip
# Public routes with another credential than a key, which may be wrong.
CREDENTIALS = {"me.sign-in", "me.sign-in-with-password", "me.oidc-callback", "enrolments.redeem", "hooks.receive"}


def operation(route: Route) -> dict[str, Any]:
    return DOCUMENT["paths"][route.path][route.method.lower()]


def resolved(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, or the answer to which it refers."""
    return DOCUMENT["components"]["responses"][answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer


def test_every_route_is_in_the_document():
    documented = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert documented == {(route.path, route.method.lower()) for route in ROUTES}
    assert DOCUMENT["openapi"].startswith("3.1")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_documents_its_purpose_input_answers_and_errors(route: Route):
    said = operation(route)
    assert said["summary"].endswith((".", ":"))
    assert ("401" in said["responses"]) is not route.is_public or route.name in CREDENTIALS
    assert (said.get("security") == []) is route.is_public
    for status, answer in said["responses"].items():
        assert resolved(answer)["description"]
        if int(status) >= 400:
            assert resolved(answer)["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
    names = {parameter["name"] for parameter in said["parameters"] if parameter["in"] == "path"}
    assert names == set(re.findall(r"\{(\w+)\}", route.path))
    if route.idempotency in ("stored", "submission"):
        assert "Idempotency-Key" in {parameter["name"] for parameter in said["parameters"]}


def test_every_reference_has_a_target():
    text = msgspec.json.encode(DOCUMENT).decode()
    for kind in ("schemas", "responses"):
        assert set(re.findall(rf'"#/components/{kind}/([^"]+)"', text)) <= DOCUMENT["components"][kind].keys()


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in the document."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(part)


def properties(name: str) -> dict[str, Any]:
    return DOCUMENT["components"]["schemas"][name]["properties"]


def test_tuples_are_written_as_generators_of_clients_read_them():
    assert [part for part in parts(DOCUMENT) if part.get("items") is False] == []
    arrays = [part for part in parts(DOCUMENT) if part.get("type") == "array"]
    assert [part for part in arrays if not {"items", "prefixItems"} & part.keys()] == []
    assert [part for part in parts(DOCUMENT) if part.get("enum") == [True]] == []
    assert any("prefixItems" in part for part in parts(DOCUMENT))
    pair = properties("YamlView")["positions"]["additionalProperties"]
    assert pair == {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}


def test_names_and_titles_of_components_are_plain_and_distinct():
    schemas = DOCUMENT["components"]["schemas"]
    assert [name for name in schemas if not name.isidentifier()] == []
    assert [name for name, schema in schemas.items() if schema.get("title", name) != name] == []


def test_refusals_are_written_once():
    problems = [part for part in parts(DOCUMENT["paths"]) if "application/problem+json" in part]
    assert problems == []


def test_a_file_is_sent_as_a_body():
    put = DOCUMENT["paths"]["/api/v1/sessions/{id}/artifacts/{file}"]["put"]
    assert put["requestBody"]["required"] is True
    assert "application/octet-stream" in put["requestBody"]["content"]
    ignored = {"content-type", "accept", "authorization"}  # the specification ignores parameters of these names
    named = {one["name"].lower() for part in parts(DOCUMENT["paths"]) for one in part.get("parameters", ())}
    assert named & ignored == set()


def test_a_problem_says_where_and_which():
    problem = properties("Problem")
    assert {"field", "index", "retryAfter"} <= problem.keys()
    assert {"urn:horae:bad-input", "urn:horae:outcome-refused", "urn:horae:internal"} <= set(problem["type"]["enum"])


def test_headers_of_answers_are_named():
    responses = DOCUMENT["components"]["responses"]
    for name in ("Busy", "TooOften", "OverQuotaOrTooOften"):
        assert "Retry-After" in responses[name]["headers"]
    assert "ETag" in operation(next(r for r in ROUTES if r.name == "jobs.get"))["responses"]["200"]["headers"]
    assert "ETag" in operation(next(r for r in ROUTES if r.name == "jobs.list"))["responses"]["200"]["headers"]
    created = operation(next(r for r in ROUTES if r.name == "sessions.register"))["responses"]["201"]
    assert "Location" not in created.get("headers", {})


async def test_an_etag_fits_the_pattern_of_if_match(api: Api):
    edit = operation(next(r for r in ROUTES if r.name == "jobs.edit"))
    (given,) = (one["schema"]["pattern"] for one in edit["parameters"] if one["name"] == "If-Match")
    made = await api.post("/api/v1/jobs", json={"name": "report", "command": "true"})
    for tag in (made.headers["etag"], made.headers["etag"].removeprefix("W/"), '"3"', "*"):
        assert re.search(given, tag)


def test_a_job_is_read_as_it_is_written():
    for name in ("JobView", "ListedJobView"):
        for field in ("schedule", "command", "python", "http", "workflow", "retry"):
            assert properties(name)[field] == properties("JobBody")[field]
    assert properties("BulkItem")["error"] == {"$ref": "#/components/schemas/Problem"}


def test_states_of_executions_are_enumerated():
    states = {"waiting", "queued", "running", "success", "failed", "cancelled", "skipped"}
    for name in (
        "ExecutionView",
        "SubmissionReceipt",
        "TriggerReceipt",
        "BulkItem",
        "LastExecution",
        "ExplanationView",
    ):
        assert set(properties(name)["status"]["enum"]) == states


def test_the_document_has_a_licence_and_its_tags():
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    assert {tag["name"] for tag in DOCUMENT["tags"]} == {route.tag for route in ROUTES}
    assert all(tag["description"] for tag in DOCUMENT["tags"])


@pytest.mark.parametrize("route", [one for one in ROUTES if one.method == "GET"], ids=lambda route: route.name)
def test_a_list_with_a_cursor_takes_one(route: Route):
    takes = {parameter["name"] for parameter in operation(route)["parameters"]}
    for answer in operation(route)["responses"].values():
        for content in resolved(answer).get("content", {}).values():
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            if "nextCursor" in DOCUMENT["components"]["schemas"].get(name, {}).get("properties", {}):
                assert {"limit", "cursor"} <= takes


async def test_jobs_that_are_read_fit_their_schema(api: Api):
    for i, more in enumerate(
        [
            {"command": ["true"], "schedule": {"every": "5m"}, "retry": ["1s", "2s"]},
            {"command": {"shell": "true"}, "schedule": "0 4 * * *", "retry": {"delay": "1s"}},
            {"python": {"function": "f", "isolation": "process"}, "retries": 3},
            {"http": {"url": "http://127.0.0.1/", "method": "GET"}},
            {"workflow": {"steps": [{"name": "a", "command": "true"}]}},
        ]
    ):
        assert (await api.post("/api/v1/jobs", json={"name": f"j{i}", **more})).status_code == 201
        job = (await api.get(f"/api/v1/jobs/j{i}")).json()
        whole = {"$ref": "#/components/schemas/JobView", "components": DOCUMENT["components"]}
        jsonschema_rs.validator_for(whole).validate(job)


async def test_it_is_served(api: Api):
    answer = await api.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == DOCUMENT


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["memory", pytest.param("postgres", marks=pytest.mark.prove)])
async def test_answers_to_random_requests_are_as_documented(store: str, request: pytest.FixtureRequest, tmp_path: Path):
    url = "sqlite://" if store == "memory" else request.getfixturevalue("postgres_url")
    node = await ServerNode.open(system_env(), url, EngineSettings(session_timeout=3600 * SECOND))
    serving = await serve(node, "127.0.0.1", 0)
    try:
        key = (await node.tenancy.keys.create(1, "schemathesis", "admin", permissions=["installation"])).text
        status, output = await schemathesis(
            serving.url, tmp_path, await prepare(node), key=key, phases="coverage,fuzzing", leaving_out=NOT_TRIED
        )
        assert status == 0, output
        itself = "openapi.read" not in NOT_TRIED
        tried = len(ROUTES) - len(NOT_TRIED) - itself  # all others except the document itself
        assert f"Tested: {tried}" in output
    finally:
        await serving.stop()
