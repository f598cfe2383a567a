"""The route that a path selects."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.server.router import Router
from horae.server.routes.table import ROUTES
from tests.server.conftest import Api

ROUTER = Router(
    [
        ("GET", "/", "home"),
        ("GET", "/jobs", "list"),
        ("POST", "/jobs", "create"),
        ("GET", "/jobs/{ref}", "read"),
        ("DELETE", "/jobs/{ref}", "delete"),
        ("GET", "/jobs/counts", "counts"),
        ("POST", "/jobs/{ref}/trigger", "trigger"),
        ("GET", "/ui/{file}", "file"),
    ]
)


@pytest.mark.parametrize(
    ("path", "method", "what", "parameters"),
    [
        ("/", "GET", "home", {}),
        ("/jobs", "POST", "create", {}),
        ("/jobs/a", "GET", "read", {"ref": "a"}),
        ("/jobs/a b", "DELETE", "delete", {"ref": "a b"}),
        ("/jobs/counts", "GET", "counts", {}),
        ("/jobs/jobs/trigger", "POST", "trigger", {"ref": "jobs"}),
        ("/ui/vendor/a.js", "GET", "file", {"file": "vendor/a.js"}),
    ],
)
def test_a_path_names_a_route(path: str, method: str, what: str, parameters: dict[str, str]):
    found = ROUTER.find(path)
    assert found is not None
    assert found[0][method] == what
    assert found[1] == parameters


@pytest.mark.parametrize(
    "path", ["", "jobs", "//", "/jobs/", "/jobs/a/", "/jobs//trigger", "/jobs/a/b", "/other", "/ui"]
)
def test_other_paths_name_nothing(path: str):
    assert ROUTER.find(path) is None


def test_the_routes_of_a_path_are_found_by_method():
    found = ROUTER.find("/jobs")
    assert found is not None
    assert list(found[0]) == ["GET", "POST"]


@given(st.text(max_size=30))
def test_any_path_can_be_looked_up(path: str):
    ROUTER.find(path)
    ROUTER.find("/jobs/" + path)


def test_every_route_is_found_by_its_own_path():
    router = Router((route.method, route.path, route.name) for route in ROUTES)
    for route in ROUTES:
        found = router.find(route.path.replace("{", "").replace("}", "") if "{" in route.path else route.path)
        assert found is not None
        assert found[0][route.method] == route.name


async def test_a_method_that_a_path_does_not_have(api: Api):
    answer = await api.put("/api/v1/workers")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


async def test_a_quoted_slash_does_not_split_a_path(api: Api):
    await api.post("/api/v1/jobs", json={"name": "etl", "workflow": [{"name": "a", "command": "true"}]})
    answer = await api.get(f"/api/v1/jobs/{quote('etl/a', safe='')}")
    assert (answer.status_code, answer.json()["ownerWorkflow"]) == (200, "etl")
    assert (await api.get(f"/api/v1/jobs/{quote('etl/b', safe='')}/executions")).status_code == 404


async def test_names_may_need_quoting(api: Api):
    answer = await api.get(f"/api/v1/jobs/{quote('a ü', safe='')}")
    assert answer.status_code in (400, 404)
    assert "a ü" in answer.json()["detail"]
