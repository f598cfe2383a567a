"""The OpenAPI document says what the server does: complete by comparison, correct by trying it at random."""

import os
import re
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae.engine.node import Node
from horae.engine.settings import EngineSettings
from horae.env import SECOND, system_env
from horae.server.access import is_public
from horae.server.openapi import build
from horae.server.route import Route
from horae.server.routes import ROUTES
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
# Public routes at which something else than a key is the credential, and may be wrong.
CREDENTIALS = {"me.sign-in", "me.sign-in-with-password", "me.oidc-callback", "enrolments.redeem", "hooks.receive"}


def operation(route: Route) -> dict[str, Any]:
    return DOCUMENT["paths"][route.path][route.method.lower()]


def test_every_route_is_in_the_document():
    documented = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert documented == {(route.path, route.method.lower()) for route in ROUTES}
    assert DOCUMENT["openapi"].startswith("3.1")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_says_what_it_is_takes_gives_and_refuses(route: Route):
    said = operation(route)
    assert said["summary"].endswith((".", ":"))
    assert ("401" in said["responses"]) is not is_public(route) or route.name in CREDENTIALS
    assert (said.get("security") == []) is is_public(route)
    for status, answer in said["responses"].items():
        assert answer["description"]
        if int(status) >= 400:
            assert answer["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
    names = {parameter["name"] for parameter in said["parameters"] if parameter["in"] == "path"}
    assert names == set(re.findall(r"\{(\w+)\}", route.path))
    if route.repeats in ("kept", "submission"):
        assert "Idempotency-Key" in {parameter["name"] for parameter in said["parameters"]}


def test_every_reference_leads_somewhere():
    text = msgspec.json.encode(DOCUMENT).decode()
    wanted = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert wanted <= DOCUMENT["components"]["schemas"].keys()


async def test_it_is_served(api: Api):
    answer = await api.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == DOCUMENT


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["memory", pytest.param("postgres", marks=pytest.mark.prove)])
async def test_whatever_is_sent_the_answer_is_as_documented(store: str, request: pytest.FixtureRequest, tmp_path: Path):
    url = "sqlite://" if store == "memory" else request.getfixturevalue("postgres_url")
    node = await Node.open(system_env(), url, EngineSettings(session_timeout=3600 * SECOND))
    serving = await serve(node, "127.0.0.1", 0)
    try:
        key = (await node.keys.create(1, "schemathesis", "admin", permissions=["installation"])).text
        status, output = await schemathesis(
            serving.url, tmp_path, await prepare(node), key=key, phases="coverage,fuzzing", leaving_out=NOT_TRIED
        )
        assert status == 0, output
        itself = "openapi.read" not in NOT_TRIED
        tried = len(ROUTES) - len(NOT_TRIED) - itself  # all the rest but the document itself
        assert f"Tested: {tried}" in output
    finally:
        await serving.stop()
