"""The jobs of an app that `horae up` registers."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from horae.cli.embedded import CombinedApps, apply_jobs, embedded_worker, registry_of
from horae.cli.fleet.worker import NoFunctions, unserved_warning, worker_settings
from horae.cli.installation.demo import FIRST, PAUSED
from horae.client.app import App
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import system_env
from horae.errors import BadInput
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import registration

with subprocess.Popen(["true"]) as process:
    ENDED = process.pid  # the id of no process after this statement
APP = """
import horae

app = horae.App()


@app.job(queue="mail", secrets=["api"])
def post() -> None: ...
"""


async def test_a_users_job_with_the_name_of_a_demo_job_does_not_start_like_it():
    app = App()
    for name in (*PAUSED, *FIRST):
        app.job(name)(lambda: None)
    node = await ServerNode.open(system_env(), "sqlite://", EngineSettings(), "(a test)")
    try:
        await apply_jobs(node, CombinedApps([app]))
        for name in (*PAUSED, *FIRST):
            job = await node.definitions.jobs.get(DEFAULT_NAMESPACE, name)
            assert (job.state, job.last_execution) == ("active", None)
    finally:
        await node.stop()


@pytest.mark.parametrize(
    ("host", "pid", "state"),
    [
        (platform.node(), ENDED, "lost"),
        (platform.node(), os.getpid(), "lost"),  # ids of processes repeat, above all in containers
        (platform.node(), os.getppid(), "live"),
        ("elsewhere", ENDED, "live"),
    ],
    ids=["ended", "own-pid", "alive", "elsewhere"],
)
async def test_a_start_ends_only_the_session_of_an_ended_process_on_its_machine(host, pid, state):
    node = await ServerNode.open(system_env(), "sqlite://", EngineSettings(), "(a test)")
    try:
        settings = Settings(worker_name="w")
        presence = registration("w", worker_settings(settings), NoFunctions())
        await GatewayTransport(node).register(structs.replace(presence, host=host, pid=pid))
        await embedded_worker(node, settings, registry_of("", demo=False))
        [session] = await node.store.sessions(DEFAULT_NAMESPACE, 0)
        assert session.state == state
    finally:
        await node.stop()


async def test_a_refused_app_is_reported_with_its_place_and_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "refused_app.py").write_text(APP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "refused_app", raising=False)
    registry = registry_of("refused_app:app", demo=False)
    assert "mail (post)" in unserved_warning(Settings(), registry)
    node = await ServerNode.open(system_env(), "sqlite://", EngineSettings(), "(a test)")
    try:
        with pytest.raises(BadInput, match=r"no secret .*refused_app\.py, line 7") as refused:
            await apply_jobs(node, registry)
        assert "horae secrets set api" in refused.value.remedy
        assert "start `horae up` without --app" in refused.value.remedy
    finally:
        await node.stop()
