"""Long-running commands: signals, the first key, and the settings of a worker."""

import asyncio
import os
import re
import signal
import stat

import pytest

from horae.cli.apps import load_app
from horae.cli.first_key import ensure_key, make_folder, private_file
from horae.cli.fleet.worker import NoFunctions, enrolled, unserved_warning, worker_settings
from horae.cli.installation.serving import with_reachable_url
from horae.cli.process import StopSignals, run_until_stopped, signals, unless_aborted
from horae.client.app import App
from horae.config.load import load
from horae.config.settings import Settings
from horae.env import SECOND, VirtualClock
from horae.errors import BadInput, NotFound
from tests.cli.fake_api import run
from tests.waiting import eventually


class FakeWorker:
    """A worker that counts drains and ends when aborted."""

    def __init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self.drains = 0
        self.started = asyncio.Event()

    async def run(self) -> str:
        self.started.set()
        return await self.ended

    def drain(self) -> None:
        self.drains += 1

    def abort(self) -> None:
        self.ended.set_result("aborted")


async def test_the_first_signal_drains_and_the_second_aborts(capsys):
    worker, clock = FakeWorker(), VirtualClock()
    with signals(clock) as taken:
        working = asyncio.ensure_future(run_until_stopped(worker, taken))
        await worker.started.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await taken.drain.wait()
        await eventually(lambda: worker.drains)
        assert not working.done()
        clock.advance(SECOND)
        os.kill(os.getpid(), signal.SIGINT)
        assert await working == "aborted"
    assert worker.drains == 1
    assert "second signal aborts" in capsys.readouterr().err


def test_signals_at_the_same_time_count_once(capsys):
    clock = VirtualClock()
    taken = StopSignals(clock)
    for _ in range(3):
        taken()
        clock.advance(SECOND // 10)
    assert taken.drain.is_set()
    assert not taken.abort.is_set()
    assert capsys.readouterr().err == "Draining; a second signal aborts.\n"

    clock.advance(SECOND)
    taken()
    assert taken.abort.is_set()


def test_a_worker_warns_about_queues_of_its_app_that_it_does_not_serve():
    app = App()
    app.job("letter", queue="mail")(lambda: None)
    app.job("report")(lambda: None)

    told = unserved_warning(Settings(), app)

    assert "mail (letter)" in told
    assert "--queue default --queue mail" in told
    assert "report" not in told
    assert unserved_warning(Settings(queues=("mail=2", "default=1")), app) == ""
    assert "with --queue fax=3 --queue default --queue mail." in unserved_warning(
        Settings(queues=("fax=3", "default")), app
    )
    assert "with --queue fax,default,mail." in unserved_warning(Settings(queues=("fax,default",)), app)
    assert unserved_warning(Settings(), NoFunctions()) == ""


async def test_the_end_of_a_worker_is_returned():
    worker = FakeWorker()
    worker.ended.set_result("replace")
    with signals(VirtualClock()) as taken:
        assert await run_until_stopped(worker, taken) == "replace"


async def test_an_abort_cancels_an_orderly_shutdown():
    with signals(VirtualClock()) as taken:
        never = asyncio.get_running_loop().create_future()
        taken.abort.set()
        assert await unless_aborted(never, taken) is None
        assert never.cancelled()


class FakeKeys:
    def __init__(self, makes: str | None) -> None:
        self.makes = makes
        self.presets: list[str | None] = []

    async def has_admin(self) -> bool:
        return self.makes is None

    async def ensure_admin_key(self, preset: str | None, found: str = "") -> str | None:
        self.presets.append(preset)
        return None if preset else self.makes


async def test_the_first_start_leaves_a_key_for_its_owner_alone(tmp_path):
    settings = load({"data": str(tmp_path)}, {}).settings
    place = await ensure_key(FakeKeys("hk_first"), settings)
    assert place == str(tmp_path / "admin.key")
    assert (tmp_path / "admin.key").read_text() == "hk_first\n"
    assert stat.S_IMODE((tmp_path / "admin.key").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["admin.key"]


async def test_later_starts_change_nothing_and_a_lost_file_is_reported(tmp_path):
    settings = load({"data": str(tmp_path)}, {}).settings
    assert "HORAE_ADMIN_KEY sets another" in await ensure_key(FakeKeys(None), settings)
    (tmp_path / "admin.key").write_text("hk_old\n")
    assert await ensure_key(FakeKeys(None), settings) == str(tmp_path / "admin.key")
    assert (tmp_path / "admin.key").read_text() == "hk_old\n"


async def test_a_second_store_in_one_folder_does_not_destroy_the_first_ones_key(tmp_path):
    settings = load({"data": str(tmp_path)}, {}).settings
    (tmp_path / "admin.key").write_text("hk_of_the_other_store\n")
    await ensure_key(FakeKeys("hk_of_the_other_store"), settings)
    assert (tmp_path / "admin.key").read_text() == "hk_of_the_other_store\n"

    (tmp_path / "admin.key").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="cannot be read"):
        await ensure_key(FakeKeys("hk_first"), settings)


async def test_a_preset_key_is_not_written_anywhere(tmp_path):
    settings = load({"data": str(tmp_path)}, {"HORAE_ADMIN_KEY": "x" * 40}).settings
    keys = FakeKeys("hk_first")
    assert "HORAE_ADMIN_KEY" in await ensure_key(keys, settings)
    assert keys.presets == ["x" * 40]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be created"):
        make_folder(tmp_path / "file" / "state")
    with pytest.raises(BadInput, match="cannot be written"), private_file(tmp_path / "gone" / "admin.key"):
        raise AssertionError("there is a file")


async def test_no_key_is_created_and_no_token_redeemed_that_cannot_be_stored(tmp_path):
    settings = load({"data": str(tmp_path), "enrol": "he_once"}, {}).settings
    for name in ("admin.key.new", "worker.key.new"):
        (tmp_path / name).mkdir()
    keys = FakeKeys("hk_first")
    with pytest.raises(BadInput, match=r"admin\.key cannot be written"):
        await ensure_key(keys, settings)
    assert keys.presets == []
    with pytest.raises(BadInput, match=r"worker\.key cannot be written"):
        await enrolled(settings, ["http://127.0.0.1:9"])


def test_a_wildcard_host_is_advertised_by_the_machines_name():
    assert with_reachable_url(load({}, {}).settings).advertise == ""
    everywhere = with_reachable_url(load({"host": "0.0.0.0"}, {}).settings)
    assert everywhere.advertise.endswith(":8420")
    assert "0.0.0.0" not in everywhere.advertise
    assert with_reachable_url(load({"host": "0.0.0.0", "advertise": "https://h"}, {}).settings).advertise == "https://h"


def test_a_worker_gets_its_settings():
    flags = {"queues": ("a", "b"), "labels": ("gpu=a100",), "concurrency": "3", "worker_name": "w", "drain_grace": "5s"}
    made = worker_settings(load(flags, {"HORAE_PASS_ENV": "TZ,LANG"}).settings, replace=False)
    assert (made.queues, made.labels, made.concurrency, made.name) == (("a", "b"), {"gpu": "a100"}, 3, "w")
    assert (made.grace, made.pass_env, made.replace) == (5_000_000, ("TZ", "LANG"), False)


def test_a_worker_without_a_key_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(None, "worker", "--server", "http://horae.example.com:8420", env={"HORAE_KEY": ""})
    assert result.exit_code == 1
    assert "horae keys create" in result.stderr


@pytest.mark.parametrize(
    ("place", "kind", "said"),
    [
        ("nowhere.jobs:app", NotFound, "no module 'nowhere'"),
        ("jobs.py:app", BadInput, "is a path"),
        ("json:app", NotFound, "json has no 'app'"),
        ("json:dumps", BadInput, "not an App"),
    ],
)
def test_a_missing_app_is_reported(place, kind, said):
    with pytest.raises(kind, match=said):
        load_app(place)


APP = "from horae import App, step\n\napp = App()\n"
FLOW = APP + "@app.workflow\ndef flow(url='http://x'):\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("lacks", "import nothing_there", r"lacks cannot be loaded: ModuleNotFoundError: .*lacks.py, line 1\)"),
        (
            "unknown",
            "import horae\napp = horae.App()\n@app.job(params={'y': 1})\ndef a(x: int): ...",
            r"unknown cannot be loaded: BadParams: a has no parameter 'y', .*unknown.py, line 3\)",
        ),
        (
            "unsendable",
            "import horae\napp = horae.App()\n@app.job\ndef a(): ...\n@app.workflow\ndef w(): return [a(), object()]",
            r"unsendable cannot be loaded: BadInput: The workflow 'w' cannot be sent: .*unsendable.py, line 5\)",
        ),
        ("raises", "\n1 / 0", r"raises cannot be loaded: ZeroDivisionError: .*raises.py, line 2\)"),
        ("unreadable", "def f(:", r"unreadable cannot be loaded: SyntaxError: .*unreadable.py, line 1\)\.$"),
        (
            "typo",
            APP + "\n@app.job(retrys=3)\ndef f(): ...",
            r".*'retrys'.* 'retries'\? \(.*typo.py, line 5\)",
        ),
        ("camel", APP + "\n@app.job(giveUp=3)\ndef f(): ...", r".*no option 'giveUp'.*\(.*camel.py, line 5\)"),
        ("flow_typo", APP + "\n@app.workflow(on_eror='x')\ndef f(): ...", r".*'on_error'\? \(.*flow_typo.py, line 5\)"),
        ("twice", APP + "\n@app.job('a b')\ndef f(): ...", r".*cannot be the name.*\(.*twice.py, line 5\)"),
        ("step_typo", FLOW + "    step.http('http://x', retrys=3)", r".*step.http.*'retries'\? \(.*, line 6\)"),
        ("looping", FLOW + "    for part in url: pass", r".*write job.map.*\(.*looping.py, line 6\)"),
        ("within", FLOW + "    'a' in url", r".*write .contains.*\(.*within.py, line 6\)"),
        ("attribute", FLOW + "    url.host", r".*write \[\"host\"\].*\(.*attribute.py, line 6\)"),
        (
            "one_need",
            APP + "\n@app.job(needs=5)\ndef f(): ...",
            r".*'needs' of @app.job takes a list of labels or a mapping, not 5 \(.*one_need.py, line 5\)",
        ),
        (
            "branch",
            FLOW + "    step.switch((url == '', 5))",
            r".*step.switch\(...\) takes a step or a list of steps, not 5 \(.*branch.py, line 6\)",
        ),
        ("no_steps", FLOW + "    pass", r".*has no steps.*\(.*no_steps.py, line 4\)"),
        (
            "sends",
            FLOW + "    step.http(url)",
            r"""sends .*step.http\({"url": "\${params.url}"}, params={"url": url}\) \(.*sends.py, line 6\)\.$""",
        ),
        (
            "runs",
            FLOW + "    got = step.command('ls')\n    step.command(['cat', got])",
            r"""runs .*step.command\(.*, params={"path": command}\) \(.*runs.py, line 7\)\.$""",
        ),
    ],
)
def test_an_error_in_the_users_module_is_reported_with_its_line(tmp_path, monkeypatch, name, text, said):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as refused:
        load_app(f"{name}:app")
    assert re.match(said, refused.value.detail)
