"""HEAD, OPTIONS, request ids, 304, gzip, other media and pages of other sites."""

import gzip
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.server.app import Application
from horae.server.cors import Cors
from horae.server.run import Serving, serve
from horae.server.shaping import LEAST, accepts_gzip

Api = httpx2.AsyncClient
PAGE = "https://dash.example.com"


@pytest.fixture
async def serving() -> AsyncIterator[tuple[ServerNode, Serving]]:
    node = await ServerNode.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0, cors=Cors([PAGE]))
    yield node, serving
    await serving.stop()


@pytest.fixture
async def api(serving: tuple[ServerNode, Serving]) -> AsyncIterator[Api]:
    key = await serving[0].tenancy.keys.ensure_admin_key()
    headers = {"authorization": f"Bearer {key}", "accept-encoding": "identity"}
    async with Api(base_url=serving[1].url, headers=headers) as client:
        yield client


@pytest.fixture
async def job(api: Api) -> dict[str, Any]:
    answer = await api.post("/api/v1/jobs", json={"name": "report", "command": ["true"], "description": "x" * LEAST})
    assert answer.status_code == 201
    made: dict[str, Any] = answer.json()
    return made


@pytest.mark.parametrize(
    "path", ["/", "/ui/core/app.js", "/ui/jobs", "/healthz", "/openapi.json", "/api/v1/jobs", "/api/v1/me", "/metrics"]
)
async def test_head_is_available_with_get(api: Api, path: str):
    head, got = await api.head(path), await api.get(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.status_code == 200
    if path != "/metrics":  # counts this request itself
        assert head.headers["content-length"] == str(len(got.content))


async def test_head_of_a_stream_ends(api: Api):
    answer = await api.head("/api/v1/stream")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert (await api.get("/api/v1/me")).status_code == 200, "the connection goes on"


async def test_options_lists_the_methods_of_a_path(api: Api, serving: tuple[ServerNode, Serving]):
    answer = await api.options("/api/v1/jobs")
    assert (answer.status_code, answer.headers["allow"]) == (204, "POST, GET, HEAD, OPTIONS")
    async with Api(base_url=serving[1].url) as nobody:
        assert (await nobody.options("/api/v1/jobs")).status_code == 401
        assert (await nobody.options("/ui")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await api.options("/api/v1/nothing")).status_code == 404


async def test_a_request_has_the_id_that_its_client_gave_it(api: Api):
    given = await api.get("/api/v1/jobs/none", headers={"x-request-id": "trace/1:2+3=@a-b_c"})
    assert given.headers["x-request-id"] == given.json()["requestId"] == "trace/1:2+3=@a-b_c"
    made = [await api.get("/api/v1/jobs/none") for _ in range(2)]
    ids = {answer.headers["x-request-id"] for answer in made}
    assert len(ids) == 2
    assert {answer.json()["requestId"] for answer in made} == ids


@pytest.mark.parametrize("strange", ["a b", "<script>", "x" * 129, "", "caf\xe9"])
async def test_a_strange_request_id_is_replaced(api: Api, strange: str):
    answer = await api.get("/api/v1/me", headers={"x-request-id": strange.encode("latin-1")})  # type: ignore[dict-item]
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] not in (strange, "")


async def test_a_known_answer_is_not_sent_again(api: Api, job: Mapping[str, Any]):
    path = f"/api/v1/jobs/{job['jobId']}"
    tag = (await api.get(path)).headers["etag"]
    for asked in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = await api.get(path, headers={"if-none-match": asked})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert "content-length" not in again.headers
    assert (await api.get(path, headers={"if-none-match": '"other"'})).status_code == 200


@pytest.mark.parametrize(
    "path", ["/openapi.json", "/worker-protocol.json", "/api/v1/jobs", "/api/v1/jobs?limit=1", "/api/v1/executions"]
)
async def test_a_known_list_or_document_is_not_sent_again(api: Api, job: Mapping[str, Any], path: str):
    first = await api.get(path, headers={"accept-encoding": "gzip"})
    again = await api.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (await api.request("HEAD", path)).headers["etag"] == first.headers["etag"]


async def test_a_list_that_has_changed_is_sent_again(api: Api, job: Mapping[str, Any]):
    tag = (await api.get("/api/v1/jobs")).headers["etag"]
    await api.post(f"/api/v1/jobs/{job['jobId']}/pause")
    assert (await api.get("/api/v1/jobs", headers={"if-none-match": tag})).status_code == 200


async def test_a_change_without_a_new_version_is_sent_again(api: Api, job: Mapping[str, Any]):
    path = f"/api/v1/jobs/{job['jobId']}"
    tag = (await api.get(path)).headers["etag"]
    assert (await api.post(f"{path}/pause")).status_code == 200
    again = await api.get(path, headers={"if-none-match": tag})
    assert (again.status_code, again.json()["version"], again.json()["status"]) == (200, job["version"], "paused")
    edited = await api.patch(path, json={"timeout": "5m"}, headers={"if-match": tag})
    assert edited.status_code == 200, "the version is the same, and edits go by it"
    stale = await api.patch(path, json={"timeout": "6m"}, headers={"if-match": tag})
    assert stale.status_code == 412


async def test_long_answers_are_compressed_for_clients_that_accept_it(api: Api, job: Mapping[str, Any]):
    path = f"/api/v1/jobs/{job['jobId']}"
    plain = await api.get(path)
    assert "content-encoding" not in plain.headers
    async with api.stream("GET", path, headers={"accept-encoding": "br;q=1, gzip;q=0.5"}) as packed:
        raw = b"".join([part async for part in packed.aiter_raw()])
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(raw))
    assert gzip.decompress(raw) == plain.content
    assert "accept-encoding" in packed.headers["vary"]


async def test_short_answers_and_secrets_are_not_compressed(api: Api, serving: tuple[ServerNode, Serving]):
    asked = {"accept-encoding": "gzip"}
    assert "content-encoding" not in (await api.get("/api/v1/overview/none", headers=asked)).headers
    for n in range(20):
        assert (await api.post("/api/v1/keys", json={"name": f"key-{n}", "role": "viewer"})).status_code == 201
    keys = await api.get("/api/v1/keys", headers=asked)
    assert len(keys.content) > LEAST
    assert "content-encoding" not in keys.headers


@pytest.mark.parametrize(
    ("said", "takes"),
    [
        ("gzip", True), ("deflate, gzip;q=0.1", True), ("*", True), ("GZIP", True), ("gzip;q=1.000", True), ("", False),
        ("gzip;q=0", False), ("gzip;q=0.000", False), ("br", False), ("notgzip", False), ("gzip;q=..", False),
        ("gzip;q=1.2.3", False), ("gzip;q=0..1", False), ("gzip;q=1.", True), ("gzip;q=" + "9" * 5000, False),
    ],
)  # fmt: skip
def test_accept_encoding_is_honoured(said: str, takes: bool):
    assert accepts_gzip({b"accept-encoding": said.encode()}) == takes


@pytest.mark.parametrize(
    ("headers", "body", "named"),
    [
        ({"content-encoding": "gzip"}, gzip.compress(b'{"name": "a"}', mtime=0), "compressed"),
        ({"content-encoding": "br"}, b"\x0b\x06\x80", "compressed"),
        ({}, gzip.compress(b'{"name": "a"}', mtime=0), "compressed"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"name=a&command=true", "form-urlencoded"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x\r\n\r\na\r\n--x--", "multipart/form-data"),
        ({"content-type": "application/yaml"}, b"name: a", "application/yaml"),
        ({"content-type": "text/xml"}, b"<name>a</name>", "text/xml"),
        ({"content-type": "application/json; charset=utf-16"}, '{"name": "a"}'.encode("utf-16"), "utf-16"),
    ],
)
async def test_a_body_that_is_not_plain_json_is_refused_by_its_type(
    api: Api, headers: dict[str, str], body: bytes, named: str
):
    answer = await api.post("/api/v1/jobs", content=body, headers={"content-type": "application/json", **headers})
    assert answer.status_code == 415
    assert named in answer.json()["detail"]
    assert "JSON" in answer.json()["remedy"] or "Content-Encoding" in answer.json()["remedy"]


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "application/merge-patch+json", "text/plain", ""]
)
async def test_json_is_accepted_under_any_content_type(api: Api, kind: str):
    body = b'{"name": "a", "command": ["true"]}'
    assert (await api.post("/api/v1/jobs", content=body, headers={"content-type": kind})).status_code == 201


async def test_pages_of_named_sites_may_call(api: Api):
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    before = await api.options("/api/v1/jobs", headers={"origin": PAGE, **asking})
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, PAGE)
    assert "authorization" in before.headers["access-control-allow-headers"]
    answer = await api.get("/api/v1/jobs", headers={"origin": PAGE})
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in answer.headers
    assert "origin" in answer.headers["vary"]
    assert (await api.get("/api/v1/jobs/none", headers={"origin": PAGE})).headers["access-control-allow-origin"] == PAGE


async def test_pages_of_other_sites_may_not(api: Api, serving: tuple[ServerNode, Serving]):
    for origin in ("https://evil.example.com", f"{PAGE}.evil.com", "null", PAGE.replace("https", "http")):
        answer = await api.get("/api/v1/jobs", headers={"origin": origin})
        assert "access-control-allow-origin" not in answer.headers
    closed = httpx2.ASGITransport(app=Application(serving[0]))
    async with Api(transport=closed, base_url="http://horae.test") as client:
        answer = await client.get("/healthz", headers={"origin": PAGE})
        assert "access-control-allow-origin" not in answer.headers, "no site may unless a setting names it"
