"""`horae doctor`: its checks and their results."""

import asyncio
import base64
import json
from pathlib import Path

import pytest

from horae.cli.checks import local_checks
from horae.cli.installation.store_checks import _migrations, _pooler, reported_checks, settings_checks
from horae.client.client import Client
from horae.client.transport.transport import ApiResponse, Unanswered
from horae.config.load import load
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import system_env
from horae.errors import StoreUnavailable, Unauthorized
from horae.features.alerts.part import AlertsPart
from horae.store.checkup import Facts
from tests.cli.fake_api import FakeApi, page, run

POSTGRES = {
    "server_version_num": "180000", "server_version": "18.0", "fsync": "on", "full_page_writes": "on",
    "synchronous_commit": "on", "max_connections": "100", "autovacuum": "on", "connections": "10",
    "oldest_snapshot_seconds": "0", "inactive_slots": "0", "feedback_standbys": "0",
}  # fmt: skip
FIRST, SECOND = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
HEALTH = {"status": "ok", "version": "0.1.0"}
STORE = {
    "kind": "sqlite", "version": "3.51.3", "revision": "0001", "newestRevision": "0001",
    "settings": {"library": "3.51.3", "journal_mode": "wal", "synchronous": "2"}, "freeBytes": 10**12,
}  # fmt: skip
CLOCK = {"now": "2027-01-15T08:00:00Z", "trusted": True, "jumpSeconds": 0.0}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def checks(result) -> dict[str, str]:
    return {item["name"]: item["state"] for item in json.loads(result.stdout)["items"]}


def answer(date: str = "Fri, 15 Jan 2027 08:00:00 GMT") -> ApiResponse:
    return ApiResponse(status=200, headers={"date": date}, body=json.dumps(HEALTH).encode())


@pytest.mark.parametrize("options", [("--data", "state"), ("--config", "state.toml")])
def test_the_key_comes_from_the_given_folder_or_settings_file(options, tmp_path, monkeypatch):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "admin.key").write_text("hk_there\n")
    (tmp_path / "state.toml").write_text('data = "state"\n')
    keys = []
    monkeypatch.setattr("horae.cli.remote.Client", lambda **given: keys.append(given["key"]) or Client(**given))

    run(None, "doctor", "--accept-clock", "--server", "http://127.0.0.1:9", *options)

    assert keys == ["hk_there"]


def test_servers_without_the_master_key_are_found():
    about = {"host": "h", "pid": 1, "roles": ["api", "gateway"]}
    servers = [{**about, "url": "http://a", "lacksMasterKey": False}, {**about, "url": "", "lacksMasterKey": True}]
    told = {
        "GET /healthz": answer(), "GET /readyz": {}, "GET /store": STORE, "GET /workers": page(), "GET /clock": CLOCK,
        "GET /executions": page(), "GET /servers": page(*servers),
    }  # fmt: skip
    said = run(FakeApi(told), "doctor")
    assert said.exit_code == 1
    assert "without the master key: h, process 1" in said.stdout
    assert "HORAE_MASTER_KEY_FILE" in said.stdout


def test_a_clock_jump_is_reported_and_can_be_accepted():
    jumped = CLOCK | {"trusted": False, "jumpSeconds": 90000.0}
    told = {
        "GET /healthz": answer(), "GET /readyz": HEALTH, "GET /store": STORE, "GET /workers": page(),
        "GET /executions": page(), "GET /servers": page(),
    }  # fmt: skip
    result = run(FakeApi(told | {"GET /clock": jumped}), "doctor")
    assert result.exit_code == 1
    assert "horae doctor --accept-clock" in result.stdout

    accepted = FakeApi(told | {"POST /clock/accept": CLOCK, "GET /clock": CLOCK})
    assert run(accepted, "doctor", "--accept-clock").exit_code == 0


def test_warnings_are_counted():
    told = {
        "GET /healthz": answer(), "GET /readyz": HEALTH, "GET /store": STORE, "GET /workers": page(),
        "GET /executions": page(), "GET /servers": page(), "GET /clock": CLOCK,
    }  # fmt: skip
    result = run(FakeApi(told), "doctor")
    assert result.exit_code == 0
    assert "Nothing is wrong" not in result.stdout
    assert result.stdout.rstrip().endswith("1 warning.")


def explained(gate: str, message: str) -> dict[str, object]:
    blocker = {"gate": gate, "message": message, "opensWhen": "Start one."}
    return {"jobId": "j", "job": "j", "executionId": "1", "summary": "", "blockers": [blocker]}


def test_work_that_no_worker_can_run_is_found():
    told = {
        "GET /healthz": answer(), "GET /readyz": HEALTH, "GET /store": STORE, "GET /clock": CLOCK,
        "GET /servers": page(),
        "GET /workers": page({"workerId": "w", "status": "live"}),
        "GET /executions": page({"executionId": "1", "jobName": "mail"}, {"executionId": "2", "jobName": "report"}),
        "GET /executions/1/explain": explained("no-worker", 'No live worker serves the queue "mail".'),
        "GET /executions/2/explain": explained("busy", "All are busy."),
    }  # fmt: skip
    result = run(FakeApi(told), "doctor")
    assert "no live worker can run mail" in result.stdout
    assert 'queued: No live worker serves the queue "mail". Start one.' in result.stdout
    assert "1 warning." in result.stdout


def test_a_healthy_server():
    worker = {"workerId": "w", "status": "live"}
    api = FakeApi(
        {
            "GET /healthz": answer(),
            "GET /readyz": HEALTH,
            "GET /store": STORE,
            "GET /workers": page(worker),
            "GET /executions": page(),
            "GET /servers": page(
                {"url": "http://a", "roles": ["api", "gateway"]},
                {"url": "", "host": "vm", "pid": 7, "roles": ["scheduler"]},
            ),
            "GET /clock": CLOCK,
        }
    )
    result = run(api, "doctor", "-o", "json")
    assert result.exit_code == 0
    found = checks(result)
    assert (found["server"], found["store"], found["workers"], found["clock"]) == ("ok", "ok", "ok", "ok")

    assert (found["migrations"], found["durability"], found["store disk"]) == ("ok", "ok", "ok")

    table = run(api, "doctor").stdout
    assert "http://a (api, gateway), vm, process 7 (scheduler)" in table
    assert "SQLite 3.51.3, the server reaches it" in table
    assert "Nothing is wrong." in table


def test_a_missing_server_is_a_failure_with_a_remedy():
    class Silent(FakeApi):
        async def send(self, call):
            raise Unanswered("connection refused", sent=False)

    result = run(Silent({}), "doctor")
    assert result.exit_code == 1
    assert "horae up" in result.stdout


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ({"GET /readyz": StoreUnavailable("The store cannot be reached.")}, {"access": "fail"}),
        ({"GET /workers": Unauthorized("No key.", "Send one.")}, {"access": "fail"}),
        ({"GET /workers": page()}, {"workers": "warn"}),
        (
            {"GET /workers": page({"workerId": "w", "status": "lost"}, {"workerId": "v", "status": "live"})},
            {"workers": "warn"},
        ),
        ({"GET /store": STORE | {"freeBytes": 2**20}}, {"store disk": "fail"}),
        ({"GET /store": STORE | {"revision": "9999"}}, {"migrations": "fail"}),
        ({"GET /store": STORE | {"archiveProblem": {"problem": "disk full", "since": "now"}}}, {"archive": "fail"}),
        ({"GET /store": STORE | {"settings": STORE["settings"] | {"synchronous": "1"}}}, {"durability": "fail"}),
        (
            {
                "GET /store": {
                    **STORE,
                    "kind": "postgresql",
                    "settings": {**POSTGRES, "fsync": "off"},
                    "freeBytes": None,
                }
            },
            {"store": "ok", "migrations": "ok", "fsync": "fail"},
        ),
        ({"GET /healthz": answer("Fri, 15 Jan 2027 08:00:30 GMT")}, {"clock": "warn"}),
        ({"GET /healthz": answer("Fri, 15 Jan 2027 09:00:00 GMT")}, {"clock": "fail"}),
    ],
)
def test_problems_of_a_server_are_found(route, said):
    routes = {
        "GET /healthz": answer(), "GET /readyz": HEALTH, "GET /store": STORE, "GET /workers": page(),
        "GET /executions": page(), "GET /servers": page(),
    }  # fmt: skip
    found = checks(
        run(FakeApi({**route, **{k: v for k, v in routes.items() if k not in route}}), "doctor", "-o", "json")
    )
    assert {name: found[name] for name in said} == said


def test_this_machine(monkeypatch):
    monkeypatch.setenv("HORAE_PROT", "1")
    Path("admin.key").write_text("secret")
    Path("admin.key").chmod(0o644)
    found = {check.name: check for check in local_checks(load(environ={}).settings)}
    assert found["settings"].state == "warn"
    assert "HORAE_PROT" in found["settings"].detail
    assert found["key file"].state == "fail"
    assert found["key file"].remedy == "chmod 600 admin.key"
    assert found["sqlite library"].state in ("ok", "warn")


def test_offline_without_a_store_creates_none():
    result = run(None, "doctor", "--offline", "-o", "json")
    assert checks(result)["store"] == "warn"
    assert list(Path().iterdir()) == []


def test_offline_opens_a_sqlite_store():
    run(None, "db", "upgrade")
    found = checks(run(None, "doctor", "--offline", "-o", "json"))
    assert (found["store"], found["migrations"], found["durability"]) == ("ok", "ok", "ok")


SEALED = {"decryptable": 2, "undecryptable": 0, "canSeal": True, "problem": None, "remedy": None, "missingKeys": []}


@pytest.mark.parametrize(
    ("sealed", "state", "said"),
    [
        (SEALED, "ok", "all 2"),
        (SEALED | {"decryptable": 0}, "ok", "no sealed values"),
        (
            SEALED | {"undecryptable": 3, "missingKeys": ["k1"]},
            "fail",
            "3 sealed values cannot be decrypted; missing: k1",
        ),
        (SEALED | {"decryptable": 0, "canSeal": False, "problem": "There is no master key."}, "warn", "no master key"),
        (SEALED | {"canSeal": False, "problem": "Another key.", "missingKeys": ["k1"]}, "fail", "Another key"),
    ],
)
def test_the_master_key_is_checked_against_sealed_values(sealed, state, said):
    [found] = [check for check in reported_checks(STORE | {"sealed": sealed}) if check.name == "master key"]
    assert (found.state, said in found.detail) == (state, True)


def test_offline_checks_use_the_master_key_of_the_settings(tmp_path, monkeypatch):
    async def seal() -> None:
        node = await ServerNode.open(system_env(), "sqlite:///horae.db", EngineSettings(master_keys=FIRST))
        await node.prepare()
        await node.base.secrets.put(1, "token", "not to be told")
        await node.part(AlertsPart).channels.create(1, {"name": "ops", "kind": "webhook", "url": "https://horae.test/"})
        assert (await node.tenancy.sealed_kinds.check()).decryptable == 2
        await node.stop()

    asyncio.run(seal())
    for keys, state in ((FIRST, "ok"), (f"{SECOND},{FIRST}", "ok"), (SECOND, "fail"), ("", "fail")):
        monkeypatch.setenv("HORAE_MASTER_KEY", keys)
        assert checks(run(None, "doctor", "--offline", "-o", "json"))["master key"] == state


def test_offline_opens_a_postgres_store(postgres_url):
    run(None, "db", "upgrade", "--store", postgres_url)
    result = run(None, "doctor", "--offline", "--store", postgres_url, "-o", "json")
    found = checks(result)
    assert {found[name] for name in ("store", "migrations", "postgresql", "durability", "connections")} == {"ok"}
    assert found["store clock"] == "fail", "the test's own clock is a virtual one"


@pytest.mark.parametrize(("version", "state"), [(None, "warn"), ("0000", "warn"), ("9999", "fail"), ("0001", "ok")])
def test_migrations(version, state):
    assert _migrations(Facts(dialect="sqlite", version=version, newest="0001")).state == state


@pytest.mark.parametrize(
    ("changes", "name", "state"),
    [
        ({}, "durability", "ok"),
        ({"fsync": "off"}, "fsync", "fail"),
        ({"full_page_writes": "off"}, "full_page_writes", "fail"),
        ({"synchronous_commit": "off"}, "synchronous_commit", "fail"),
        ({"server_version_num": "130000"}, "postgresql", "fail"),
        ({"oldest_snapshot_seconds": "9999"}, "oldest snapshot (s)", "warn"),
        ({"inactive_slots": "1"}, "inactive replication slots", "warn"),
        ({"connections": "90"}, "connections", "warn"),
        ({"autovacuum": "off"}, "autovacuum", "fail"),
    ],
)
def test_postgres_settings_are_checked(changes, name, state):
    facts = Facts(dialect="postgresql", version="0001", settings={**POSTGRES, **changes})
    found = {check.name: check for check in settings_checks(facts)}
    assert found[name].state == state
    assert found[name].state == "ok" or found[name].remedy


def test_a_pooler_is_guessed_from_its_port():
    pooler, postgres = "postgresql://h:6432/horae", "postgresql://h/horae"
    assert _pooler(Settings(store=pooler)).state == "warn"
    assert _pooler(Settings(store=pooler, store_direct=postgres)).state == "ok"
    assert _pooler(Settings(store=postgres)).state == "ok"
