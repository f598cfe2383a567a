"""Features switched off by a setting: a server runs jobs without them, keeps their rows, and names the remedy."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from click.testing import CliRunner, Result

from horae.cli.fleet.worker import NoFunctions
from horae.cli.main import cli
from horae.client.client import Client
from horae.config.load import load
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import system_env
from horae.errors import BadInput, NotFound
from horae.feature import Feature, enabled, installed, optional
from horae.server.routes.table import ROUTES, routes_for
from horae.server.run import serve
from horae.store.copying import backup
from horae.store.driver import one
from horae.store.script import Statement
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.waiting import eventually

KEY = "a-preset-key-of-features-" + "0" * 32
MASTER_KEY = base64.b64encode(b"k" * 32).decode()
ALERT = {"kind": "missing-success", "since": "2h"}


def without(*names: str) -> tuple[str, ...]:
    """Return the setting that switches off these features, and the features that need them."""
    off = set(names)
    for feature in installed():  # each after the features that it needs
        if off.intersection(feature.needs):
            off.add(feature.name)
    return tuple(f"-{name}" for name in sorted(off))


class Running(NamedTuple):
    """A listening server with a worker, and a client of it."""

    node: ServerNode
    url: str
    client: Client
    http: httpx2.AsyncClient


@asynccontextmanager
async def running(store: str, folder: Path, *features: str) -> AsyncIterator[Running]:
    settings = EngineSettings(features=features, artifacts=f"{folder}/artifacts", master_keys=MASTER_KEY)
    node = await ServerNode.open(system_env(), store, settings)
    await node.tenancy.keys.ensure_admin_key(KEY)
    serving = await serve(node, "127.0.0.1", 0)
    worker = WorkerRuntime(node.env, WorkerSettings(name="beside"), GatewayTransport(node), NoFunctions())
    working = asyncio.ensure_future(worker.run())
    try:
        headers = {"authorization": f"Bearer {KEY}"}
        async with (
            Client(serving.url, KEY) as client,
            httpx2.AsyncClient(base_url=serving.url, headers=headers) as http,
        ):
            yield Running(node, serving.url, client, http)
    finally:
        worker.abort()
        await working
        await serving.stop()


async def run_a_job(client: Client) -> str:
    """Run a job that writes a line, to its end."""
    await client.jobs.create("hello", command="echo hello")
    execution = await client.submit("hello")
    return (await client.executions.wait(execution.execution_id, timeout=60)).status


def refused(features: Sequence[str]) -> list[tuple[str, str]]:
    """Return the requests that a server with these settings must refuse."""
    _, refusing = routes_for(enabled(features))
    return [(route.method, re.sub(r"\{\w+\}", "x", route.path)) for route in refusing]


async def check_refusals(http: httpx2.AsyncClient, features: Sequence[str]) -> None:
    """Call every route of the disabled features."""
    for method, path in refused(features):
        answer = await http.request(method, path)
        problem = answer.json()
        assert (answer.status_code, problem["detail"][:12]) == (404, "The feature "), (method, path, problem)
        name = problem["feature"]
        assert f"-{name}" in features
        assert problem["detail"] == f"The feature {name} is switched off on this server."
        assert f'Remove "-{name}" from the setting `features`' in problem["remedy"]


@pytest.mark.parametrize("name", optional())
@pytest.mark.timeout(120)
async def test_a_server_without_a_feature_runs_a_job_and_refuses_its_routes(name: str, tmp_path: Path):
    features = without(name)
    async with running(f"sqlite:///{tmp_path}/horae.db", tmp_path, *features) as here:
        assert await run_a_job(here.client) == "success"
        await check_refusals(here.http, features)
        assert name not in (await here.client.store()).raw["features"]
        assert name not in (await here.http.get("/api/v1/me")).json()["features"]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.timeout(180)
async def test_a_server_without_any_optional_feature_runs_a_job(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
):
    url = f"sqlite:///{tmp_path}/horae.db" if database == "sqlite" else request.getfixturevalue("postgres_url")
    features = without(*optional())
    async with running(url, tmp_path, *features) as here:
        assert await run_a_job(here.client) == "success"
        await check_refusals(here.http, features)
        required = sorted(feature.name for feature in installed() if feature.required)
        assert (await here.client.store()).raw["features"] == required


async def test_the_document_of_a_server_lists_its_routes(tmp_path: Path):
    async with running("sqlite://", tmp_path, "-alerts") as here:
        paths = (await here.http.get("/openapi.json")).json()["paths"]
    listed = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    kept, gone = (({(route.method, route.path) for route in routes}) for routes in routes_for(enabled(["-alerts"])))
    assert listed == kept
    assert ("GET", "/api/v1/alert-rules") in gone


async def test_a_disabled_feature_has_no_metrics_and_services(tmp_path: Path):
    async with running("sqlite://", tmp_path) as here:
        whole, services = await measured(here)
    async with running("sqlite://", tmp_path, "-alerts") as here:
        left, fewer = await measured(here)
    assert whole - left == {
        "horae_alerts", "horae_alert_changes_total", "horae_alert_evaluations_failed_total", "horae_alert_notices_total"
    }  # fmt: skip
    assert services - fewer == {"alert-watch", "alert-delivery"}


async def measured(here: Running) -> tuple[set[str], set[str]]:
    text = (await here.http.get("/metrics")).text
    families = set(re.findall(r"^# TYPE (horae_\w+)", text, re.MULTILINE))
    return families, {service.name for service in here.node.services()}


async def test_a_parameter_that_needs_a_feature_is_refused_without_it(tmp_path: Path):
    async with running("sqlite://", tmp_path, "-statistics") as here:
        answer = await here.http.get("/api/v1/jobs", params={"statistics": "true"})
        assert (answer.status_code, answer.json()["feature"]) == (404, "statistics")
        assert (await here.http.get("/api/v1/jobs")).status_code == 200


async def test_a_topic_of_a_feature_that_is_off_is_refused(tmp_path: Path):
    async with running("sqlite://", tmp_path, "-alerts") as here:
        answer = await here.http.get("/api/v1/stream", params={"topics": "jobs,alerts"})
        assert (answer.status_code, answer.json()["feature"]) == (404, "alerts")


async def test_disabled_features_are_not_revealed_without_a_credential(tmp_path: Path):
    async with running("sqlite://", tmp_path, "-alerts") as here, httpx2.AsyncClient(base_url=here.url) as anonymous:
        assert (await anonymous.get("/api/v1/alerts")).status_code == 401


@pytest.mark.timeout(120)
async def test_sdk_and_commands_show_the_servers_message(tmp_path: Path):
    def command(*words: str) -> Result:
        env = {"HORAE_URL": here.url, "HORAE_KEY": KEY}
        return CliRunner().invoke(cli, list(words), env=env)

    async with running("sqlite://", tmp_path, "-alerts", "-rollouts") as here:
        with pytest.raises(NotFound) as caught:
            await here.client.alerts.rules.list()
        assert caught.value.detail == "The feature alerts is switched off on this server."
        told = await asyncio.to_thread(command, "alerts", "rules", "list")
        assert told.exit_code == 3
        assert "The feature alerts is switched off on this server." in told.stderr
        assert 'Remove "-alerts" from the setting `features`' in told.stderr
        await here.client.jobs.create("hello", command="true")
        shown = await asyncio.to_thread(command, "jobs", "show", "hello")
        assert (shown.exit_code, "rollout" in shown.output) == (0, False)


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.timeout(180)
async def test_a_backup_holds_the_rows_of_a_feature_that_is_off(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
):
    url = f"sqlite:///{tmp_path}/horae.db" if database == "sqlite" else request.getfixturevalue("postgres_url")
    async with running(url, tmp_path) as here:
        await here.client.alerts.rules.put("failures", ALERT)
    async with running(url, tmp_path, "-alerts") as here:
        await backup.backup(here.node.store.driver, tmp_path / "backup", here.node.env)
    restored = f"sqlite:///{tmp_path}/restored.db"
    await backup.restore(tmp_path / "backup", restored, system_env())
    async with running(restored, tmp_path) as here:
        assert [rule.name for rule in await here.client.alerts.rules.list()] == ["failures"]


@pytest.mark.timeout(120)
async def test_a_deleted_namespace_leaves_no_rows_of_a_feature_that_is_off(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/horae.db"
    async with running(url, tmp_path) as here:
        await here.http.post("/api/v1/namespaces", json={"name": "tenant"})
        async with Client(here.url, KEY, namespace="tenant") as tenant:
            await tenant.alerts.rules.put("failures", ALERT)
    async with running(url, tmp_path, "-alerts") as here:
        deleted = await here.http.delete("/api/v1/namespaces/tenant")
        assert deleted.status_code == 204, deleted.text
        count = Statement("count", "SELECT count(*) FROM alert_rules")
        await eventually(lambda: rows_are_gone(here.node, count))


async def test_requests_to_the_kernel_that_need_a_disabled_feature_are_refused_or_warned(tmp_path: Path):
    async with running("sqlite://", tmp_path, "-templates", "-statistics") as here:
        made = await here.http.post("/api/v1/jobs", json={"name": "eu", "template": "backup"})
        assert (made.status_code, made.json()["field"]) == (400, "template")
        assert made.json()["detail"] == "The feature templates is switched off on this server."
        documents = {"templates": [{"name": "backup", "job": {"command": "true"}}]}
        applied = await here.http.post("/api/v1/apply", json=documents)
        assert (applied.status_code, applied.json()["field"]) == (400, "templates[0]")
        counted = (await here.http.get("/api/v1/fires/counts")).json()
        assert counted["notes"] == ["Ends of executions are not counted, because statistics are switched off."]
        await here.client.jobs.create("hello", command="true")
        assert (await here.http.get("/api/v1/jobs/hello/grid")).json()["items"] == []


@pytest.mark.timeout(120)
async def test_a_secret_is_stored_for_a_feature_that_is_off(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/horae.db"
    async with running(url, tmp_path) as here:
        await here.http.put("/api/v1/secrets/hook", json={"value": "a-secret-of-some-length"})
        channel = {"kind": "webhook", "url": "https://example.com/", "secret": "secret://hook"}
        kept = await here.http.put("/api/v1/alert-channels/ops", json=channel)
        assert kept.status_code < 300, kept.text
    async with running(url, tmp_path, "-alerts") as here:
        refused = await here.http.delete("/api/v1/secrets/hook")
        assert refused.status_code == 409, refused.text
        assert refused.json()["detail"] == 'Channels of alerts refer to the secret "hook": "ops".'
        assert (await here.http.delete("/api/v1/secrets/hook?force=true")).status_code == 204


@pytest.mark.timeout(120)
async def test_an_erased_namespace_leaves_no_rows_of_features_that_are_off(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/horae.db"
    async with running(url, tmp_path) as here:
        await here.http.post("/api/v1/namespaces", json={"name": "tenant"})
        async with Client(here.url, KEY, namespace="tenant") as tenant:
            await tenant.alerts.rules.put("failures", ALERT)
            await tenant.jobs.create("import", command="true", triggers=[{"name": "new", "event": "arrived"}])
            await tenant.events.send("arrived", {"file": "a"})
    off = [name for name in optional() if name != "erasure"]
    async with running(url, tmp_path, *without(*off)) as here:
        whole = {"confirm": "tenant", "definitions": True, "cancel": True}
        erased = (await here.http.post("/api/v1/namespaces/tenant/erasure", json=whole)).json()
        assert (erased["complete"], erased["events"]) == (True, 1), erased
        for table in ("alert_rules", "events", "event_fires"):
            assert await rows_are_gone(here.node, Statement("count", f"SELECT count(*) FROM {table}"))


async def rows_are_gone(node: ServerNode, count: Statement) -> bool:
    ((rows,),) = await node.store.driver.read(one(count))
    return bool(rows == 0)


async def test_all_composed_routes_are_served():
    """A feature that is missing from the list would be missing from the documents, too."""
    hung = [row.module for feature in installed() for row in feature.routes]
    declared = {str(path) for path in Path("src/horae/features").glob("*/*routes.py")}
    assert {f"src/{module.replace('.', '/')}.py" for module in hung} == declared
    assert len(hung) == len(declared)
    kept, gone = routes_for(enabled(without(*optional())))
    assert len(kept) + len(gone) == len(ROUTES) == len({route.name for route in ROUTES}) == 209


@pytest.mark.parametrize(
    ("features", "detail", "remedy"),
    [
        (("-alert",), '"-alert" names no feature. Did you mean "-alerts"?', "Write some of: -alerts, -archive"),
        (("-dead-letters",), '"-dead-letters" names no feature. Did you mean "-dead_letters"?', "Write some of"),
        (("alerts",), '"alerts" switches nothing.', 'To switch this one off, write "-alerts".'),
        (("-users",), "The feature users cannot be switched off.", "Write some of: -alerts"),
    ],
)
def test_an_invalid_setting_is_refused(features: tuple[str, ...], detail: str, remedy: str):
    with pytest.raises(BadInput) as refused:
        enabled(features)
    assert refused.value.detail == detail
    assert remedy in refused.value.remedy
    assert refused.value.fields["field"] == "features"


def test_a_feature_that_another_needs_is_switched_off_with_it_only_by_name(monkeypatch: pytest.MonkeyPatch):
    used, user = Feature(name="files", about=""), Feature(name="reports", about="", needs=("files",))
    monkeypatch.setattr("horae.feature.installed", lambda: (used, user))
    with pytest.raises(BadInput) as refused:
        enabled(["-files"])
    assert str(refused.value) == (
        'The feature reports needs files. Switch it off as well with "-reports", or remove "-files".'
    )
    assert enabled(["-files", "-reports"]) == ()
    assert enabled(["-reports"]) == (used,)


def test_a_refused_setting_names_its_origin(tmp_path: Path):
    file = tmp_path / "horae.toml"
    file.write_text('features = ["-alert"]')
    with pytest.raises(BadInput, match=re.escape(f"features = ['-alert'] in {file}: \"-alert\" names no feature")):
        load(environ={}, file=file)
    with pytest.raises(BadInput, match=re.escape("HORAE_FEATURES=-users in the environment: The feature users cannot")):
        load(environ={"HORAE_FEATURES": "-users"})
    assert load(environ={"HORAE_FEATURES": "-alerts,-rollouts"}).settings.features == ("-alerts", "-rollouts")
