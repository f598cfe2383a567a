"""Each route is open to the credentials that it declares, and to no others."""

import httpx2
import pytest
from msgspec.structs import replace

from horae.engine.server_node import ServerNode
from horae.errors import Forbidden
from horae.model.tenancy.principal import LOCAL
from horae.server.access import VIEW
from horae.server.app import Application
from horae.server.auth import authorise
from horae.server.route import UNRECORDED, Route, delete, get, patch, post, put
from horae.server.routes.definitions.jobs import create
from horae.server.routes.table import ROUTES
from horae.server.scopes import closed
from tests.server.conftest import Api, Connect, key_for

PUBLIC = {
    "GET /healthz",
    "GET /readyz",
    "GET /",
    "GET /ui",
    "GET /ui/{file}",
    "POST /api/v1/sign-in",
    "GET /api/v1/sign-in",
    "POST /api/v1/sign-in/password",
    "GET /api/v1/sign-in/oidc",
    "GET /api/v1/sign-in/oidc/callback",
    "POST /api/v1/enrolments/redeem",
    "POST /api/v1/hooks/{token}",
    "POST /api/v1/callbacks/{token}",
}
CLOSED = [route for route in ROUTES if not route.is_public]
OF_ALL = {"me.get", "me.sign-out", "me.password", "openapi.read", "openapi.protocol"}  # any credential
FOR_WORKERS = {route.name for route in ROUTES if route.tag == "sessions"} | OF_ALL


def path_of(route: Route) -> str:
    return route.path.replace("{ref}", "report").replace("{id}", "0198c5a0-0000-7000-8000-000000000000")


def named(route: Route) -> str:
    return route.name


def test_only_the_named_routes_are_public():
    assert {f"{route.method} {route.path}" for route in ROUTES if route.is_public} == PUBLIC


def test_a_worker_may_use_the_session_routes_only():
    assert {route.name for route in CLOSED if "worker" in route.access.roles} == FOR_WORKERS


@pytest.mark.parametrize("declare", [get, post, put, patch, delete])
@pytest.mark.parametrize("given", [{"scope": closed, "audit": UNRECORDED}, {"access": VIEW, "audit": UNRECORDED}])
def test_a_route_without_access_or_scope_cannot_be_declared(declare, given):
    with pytest.raises(TypeError, match=r"access|scope"):
        declare("/api/v1/things", "things.do", **given)


@pytest.mark.parametrize("declare", [post, put, patch, delete])
def test_a_change_without_an_audit_policy_cannot_be_declared(declare):
    with pytest.raises(TypeError, match="audit"):
        declare("/api/v1/things", "things.do", access=VIEW, scope=closed)


def test_a_refused_role_is_told_which_key_to_create():
    with pytest.raises(Forbidden, match='requires the role "editor"') as refused:
        authorise(replace(LOCAL, role="worker"), create)
    assert "horae keys create NAME --role editor" in refused.value.remedy


@pytest.mark.parametrize("route", CLOSED, ids=named)
async def test_without_a_credential_a_route_is_401(route: Route, anonymous: Api):
    answer = await anonymous.request(route.method, path_of(route))

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:horae:unauthorized"


@pytest.mark.parametrize("route", [r for r in CLOSED if r.name not in FOR_WORKERS], ids=named)
async def test_a_worker_is_forbidden_the_rest(route: Route, worker: Api):
    answer = await worker.request(route.method, path_of(route))

    assert (answer.status_code, answer.json()["type"]) == (403, "urn:horae:forbidden")


@pytest.mark.parametrize("route", [r for r in ROUTES if r.tag == "sessions"], ids=named)
async def test_a_worker_reaches_the_session_routes(route: Route, worker: Api):
    assert (await worker.request(route.method, path_of(route))).status_code not in (401, 403)


SUFFIXES = ["/healthz", "/readyz", "/configs", ";x", "/.", "/%2e%2e/healthz", "%00", "//healthz", "?/healthz", "."]


@pytest.mark.parametrize("suffix", SUFFIXES)
async def test_no_encoding_of_a_path_bypasses_access(suffix: str, anonymous: Api):
    for route in CLOSED:
        answer = await anonymous.request(route.method, path_of(route) + suffix)
        assert answer.status_code == 401, (route.name, suffix)


@pytest.mark.parametrize("path", ["/api/v1/JOBS", "//api/v1/jobs", "/api/v1/jobs/", "/API/v1/jobs", "/api/v1//jobs"])
async def test_neither_case_nor_slashes_bypass_access(path: str, anonymous: Api):
    assert (await anonymous.get(f"http://horae.test{path}")).status_code == 401


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/api/v2/jobs", "/healthz/more", "/uix", "/admin"])
async def test_a_missing_path_is_401_without_and_404_with_a_credential(path: str, anonymous: Api, api: Api):
    assert (await anonymous.get(path)).status_code == 401
    answer = await api.get(path)
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:horae:not-found")


@pytest.mark.parametrize(("method", "status"), [("OPTIONS", 204), ("HEAD", 200)])
async def test_options_of_a_path_need_a_credential(method: str, status: int, anonymous: Api, api: Api):
    assert (await anonymous.request(method, "/api/v1/jobs")).status_code == 401
    assert (await api.request(method, "/api/v1/jobs")).status_code == status


@pytest.mark.parametrize("method", ["TRACE", "PROPFIND", "DELETE"])
async def test_a_missing_method_is_401_without_and_405_with_a_credential(method: str, anonymous: Api, api: Api):
    assert (await anonymous.request(method, "/api/v1/jobs")).status_code == 401
    answer = await api.request(method, "/api/v1/jobs")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


@pytest.mark.parametrize(
    "credential", ["Bearer", "Bearer ", "Bearer nonsense", "Basic YWRtaW46YWRtaW4=", "Bearer hk_0000_" + "0" * 64, "é"]
)
async def test_a_wrong_credential_is_401(credential: str, connect: Connect):
    answer = await connect(authorization=credential.encode("latin-1")).get("/api/v1/jobs")
    assert answer.status_code == 401


async def test_websockets_are_refused(app):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message["type"])

    scope = {"type": "websocket", "path": "/api/v1/stream", "headers": [], "query_string": b"", "subprotocols": []}
    await app(scope, receive, send)
    assert sent == ["websocket.close"]


@pytest.mark.parametrize("path", ["/", "/ui/styles/base.css", "/healthz", "/api/v1/jobs", "/nothing"])
async def test_every_page_has_the_safety_headers(path: str, anonymous: Api):
    headers = (await anonymous.get(path)).headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


async def test_a_server_with_some_parts_names_them_in_refusals_of_the_rest(node: ServerNode):
    key = await key_for(node, "admin")
    transport = httpx2.ASGITransport(app=Application(node, ("gateway",)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://horae") as client:
        answer = await client.get("/api/v1/jobs", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 404
    assert "runs only gateway" in answer.json()["remedy"]


async def test_a_key_that_may_not_register_is_told_to_use_a_workers_key(node: ServerNode, connect: Connect):
    viewer = connect(authorization=f"Bearer {await key_for(node, 'viewer')}")
    answer = await viewer.post("/api/v1/sessions", json={"protocol": 2, "worker": "w"})
    assert answer.status_code == 403
    assert 'requires the role "worker"' in answer.json()["detail"]
    assert "--role worker" in answer.json()["remedy"]
