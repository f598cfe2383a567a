"""Random requests without a credential, or with a viewer's, break nothing: they are refused, never with a 5xx."""

import os
from pathlib import Path

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, system_env
from horae.model.tenancy.principal import Principal
from horae.server.route import Route
from horae.server.routes.table import ROUTES
from horae.server.run import serve
from tests.security.people import KEY
from tests.server.random_requests import prepare, schemathesis

PROVE = bool(os.environ.get("HORAE_PROVE"))
LEFT_OUT = (
    "stream.follow",
    "openapi.read",
)  # the first does not end, the second is where the fuzzer reads the document


def tried(who: str) -> list[str]:
    """Return the operations that a client may use; all, where refusals are fast enough to test them."""
    viewer = Principal(namespace=1, role="viewer", key="", name="")
    for_them = (route for route in ROUTES if PROVE or route.is_public or (who == "viewer" and may(viewer, route)))
    return [route.name for route in for_them if route.name not in LEFT_OUT]


def may(who: Principal, route: Route) -> bool:
    return route.access.admits(who)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("who", ["nobody", "viewer"])
@pytest.mark.parametrize("store", ["memory", pytest.param("postgres", marks=pytest.mark.prove)])
async def test_random_requests_of_strangers_and_viewers_break_nothing(
    store: str, who: str, request: pytest.FixtureRequest, tmp_path: Path
):
    url = "sqlite://" if store == "memory" else request.getfixturevalue("postgres_url")
    settings = EngineSettings(session_timeout=3600 * SECOND, artifacts=str(tmp_path / "artifacts"), master_keys=KEY)
    node = await ServerNode.open(system_env(), url, settings)
    serving = await serve(node, "127.0.0.1", 0)
    try:
        values = await prepare(node)
        before = await node.definitions.jobs.get(1, "report")
        key = None if who == "nobody" else (await node.tenancy.keys.create(1, "viewer", "viewer")).text
        status, said = await schemathesis(
            serving.url,
            tmp_path,
            values,
            key=key,
            phases="coverage,fuzzing" if PROVE else "fuzzing",
            examples=5 if PROVE else 1,
            checks="not_a_server_error",
            only=tried(who),
        )
        assert status == 0, said
        assert f"Tested: {len(tried(who))}" in said
        assert (await node.definitions.jobs.get(1, "report")).version == before.version
        assert [job.name for job in (await node.definitions.jobs.list(1)).items] == ["report"]
    finally:
        await serving.stop()
