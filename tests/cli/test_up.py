"""`horae up` as a user sees it: the process, its greeting, its jobs, its end."""

import asyncio
import io
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from horae.cli.installation.up import _exports, activation, greet
from horae.cli.main import cli
from horae.config.settings import Settings

JOBS = """
import horae

app = horae.App()


@app.job(params={"times": 2})
def shout(ctx: horae.Context, word: str, times: int) -> str:
    ctx.log(f"shouting {word}")
    return word.upper() * times


@app.job(retries=1, retry=["10ms"])
async def breaks() -> None:
    raise ValueError("it breaks")
"""


class Up:
    """A running `horae up`, and commands that talk to it."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, words: str) -> None:
        self.process, self.folder, self.words = process, folder, words
        found = re.search(r"is up at (\S+)", words)
        assert found, words
        self.url = found[1]

    def run(self, *args: str, code: int = 0) -> Result:
        env = {"HORAE_URL": self.url, "HORAE_DATA": str(self.folder), "HORAE_KEY": ""}
        result = CliRunner().invoke(cli, list(args), env=env)
        assert result.exit_code == code, result.output
        return result

    def json(self, *args: str, code: int = 0):
        return json.loads(self.run(*args, "-o", "json", code=code).stdout)


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "horae.cli.main", *args]


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[Up]:
    """Start the process, wait for the end of its greeting, and kill it afterwards."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
    started = command("up", "--port", "0", "--data", str(folder), *flags)
    process = subprocess.Popen(started, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        words = ""
        for line in process.stdout:
            words += line
            if "Ctrl-C stops it" in line:
                break
        if process.poll() is not None or "Ctrl-C" not in words:
            raise AssertionError(words + process.stderr.read())
        yield Up(process, folder, words)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def up(tmp_path_factory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    (folder / "jobs.py").write_text(JOBS)
    with running(folder, "--app", "jobs:app", "--demo") as started:
        yield started


def test_the_greeting_shows_all_addresses_and_files(up):
    assert f"{up.url}/#code=" in up.words
    assert "sqlite:///" in up.words
    assert str(up.folder / "admin.key") in up.words
    assert f"sealed with {up.folder / 'secret.key'}" in up.words
    assert len(re.findall(r"^  horae ", up.words, re.MULTILINE)) == 3
    assert oct((up.folder / "admin.key").stat().st_mode)[-3:] == "600"


class Logging(io.StringIO):
    """An output that adds a log line after every write, as if another thread logged to it."""

    def write(self, text: str) -> int:
        return super().write(text + '{"event": "logged"}\n' if text else text)


def test_no_line_of_the_log_comes_between_the_lines_of_the_greeting(tmp_path, monkeypatch):
    async def new_sign_in_code():
        return SimpleNamespace(link=lambda url: f"{url}/#code=1")

    node = SimpleNamespace(tenancy=SimpleNamespace(keys=SimpleNamespace(new_sign_in_code=new_sign_in_code)))
    serving = SimpleNamespace(url="http://127.0.0.1:1", remote="http://there:1")
    monkeypatch.setattr(sys, "stdout", output := Logging())

    asyncio.run(greet(node, serving, Settings(data=tmp_path), "a key", demo=True))

    greeting, ending, rest = output.getvalue().partition("Ctrl-C stops it.\n")
    assert (greeting[:6], ending) == ("Horae ", "Ctrl-C stops it.\n")
    assert "logged" not in greeting
    assert "logged" in rest


def test_another_sign_in_link_is_created_while_it_runs(up):
    assert "`horae sign-in`" in up.words
    first, second = up.run("sign-in").stdout, up.run("sign-in").stdout
    assert first.startswith(f"{up.url}/#code=")
    assert first != second


def test_the_server_reports_the_state_of_its_sqlite_store(up):
    told = up.json("db", "version")
    assert (told["kind"], told["store"], told["settings"]["journal_mode"]) == ("sqlite", "0001", "wal")

    checks = {one["name"]: one for one in up.json("doctor")["items"]}
    assert (checks["migrations"]["detail"], checks["store"]["state"]) == ("at 0001, the newest", "ok")

    owned = {one["name"]: one for one in up.json("doctor", "--offline", code=1)["items"]}["store"]
    assert f"horae doctor, without --offline (--server {up.url})" in owned["remedy"]


def test_the_greeting_shows_how_to_put_the_commands_on_the_path(tmp_path, monkeypatch):
    activate, command = tmp_path / "bin" / "activate", tmp_path / "bin" / "horae"
    activate.parent.mkdir()
    activate.touch()
    command.touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    monkeypatch.setenv("PATH", str(tmp_path))
    assert activation() == [f". {activate}"]
    monkeypatch.setenv("PATH", str(command.parent))
    assert activation() == []


def test_the_greeting_quotes_folders_for_the_shell(tmp_path, monkeypatch):
    (tmp_path / "my venv" / "bin").mkdir(parents=True)
    (tmp_path / "my venv" / "bin" / "activate").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert activation() == [f". '{tmp_path}/my venv/bin/activate'"]
    serving = SimpleNamespace(url="http://127.0.0.1:1")
    [line] = _exports(serving, Settings(data=tmp_path / "my state"))
    assert line == f"export HORAE_URL=http://127.0.0.1:1 HORAE_DATA='{tmp_path}/my state'"


def test_it_warns_when_other_machines_can_connect_and_shows_a_working_link(tmp_path):
    with running(tmp_path, "--host", "0.0.0.0") as everywhere:
        assert everywhere.url.startswith("http://127.0.0.1:")
        assert f"remote   http://{platform.node()}:" in everywhere.words
        assert "0.0.0.0" not in everywhere.words
        everywhere.process.send_signal(signal.SIGTERM)
        everywhere.process.send_signal(signal.SIGINT)  # together with the first: the same request
        _, errors = everywhere.process.communicate()
        assert everywhere.process.returncode == 0
    assert "Warning: other machines reach this server on 0.0.0.0" in errors
    assert "without TLS" in errors
    assert "Aborting" not in errors


def test_a_job_is_created_run_and_followed(up):
    up.run("jobs", "create", "hello", "--command", "echo hello")
    result = up.run("jobs", "trigger", "hello", "--follow")
    assert result.stdout.startswith("hello\n")
    assert "success" in result.stdout
    last = up.json("jobs", "show", "hello")["lastExecution"]
    assert last["status"] == "success"
    assert up.json("executions", "show", last["executionId"])["exitCode"] == 0


def test_a_store_in_use_is_backed_up_by_its_server_and_restored(up, tmp_path):
    up.run("jobs", "create", "kept", "--command", "echo kept")
    file = tmp_path / "horae.backup"
    assert "Wrote" in up.run("db", "backup", str(file)).stdout
    assert oct(file.stat().st_mode)[-3:] == "600"
    up.run("db", "restore", str(file), "--data", str(tmp_path / "again"))
    with running(tmp_path / "again") as again:
        (tmp_path / "again" / "admin.key").write_text((up.folder / "admin.key").read_text())
        assert again.json("jobs", "show", "kept")["command"] == ["echo", "kept"]


def test_functions_of_the_app_are_jobs(up):
    done = up.json("jobs", "trigger", "shout", "--param", "word=hey", "--wait")
    assert done["result"] == "HEYHEY"
    assert "shouting hey" in up.run("executions", "logs", done["executionId"]).stdout
    assert "word" in up.run("jobs", "trigger", "shout", code=2).stderr


def test_failures_end_as_dead_letters_and_are_retried(up):
    failed = up.json("jobs", "trigger", "breaks", "--wait", code=1)
    assert failed["errorMessage"] == "it breaks"
    assert [one["outcome"] for one in up.json("executions", "attempts", failed["executionId"])["items"]] == [
        "failed"
    ] * 2
    listed = up.json("dlq", "list", "--job", "breaks")["items"]
    assert [one["execution"]["executionId"] for one in listed] == [failed["executionId"]]
    assert up.json("dlq", "retry", failed["executionId"])["done"] == 1
    assert up.json("dlq", "discard", "--job", "breaks", "--yes")["skipped"] == 0


def test_jobs_are_edited_paused_rolled_back_deleted_and_restored(up):
    up.run("jobs", "create", "nightly", "--command", "true", "--schedule", "0 3 * * *")
    assert "version 1 became 2" in up.run("jobs", "edit", "nightly", "--retries", "4").stdout
    up.run("jobs", "edit", "nightly", "--retries", "5", "--if-version", "1", code=4)
    up.run("jobs", "rollback", "nightly", "1")
    assert (up.json("jobs", "show", "nightly")["version"], up.json("jobs", "show", "nightly")["retries"]) == (3, 0)
    up.run("jobs", "pause", "nightly")
    assert up.json("jobs", "show", "nightly")["status"] == "paused"
    up.run("jobs", "resume", "nightly")
    up.run("jobs", "delete", "nightly")
    up.run("jobs", "show", "nightly", code=3)
    up.run("jobs", "restore", "nightly")
    assert up.json("jobs", "show", "nightly")["status"] == "scheduled"
    assert len(up.json("jobs", "versions", "nightly")["items"]) == 3


def test_a_file_is_applied(up, tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("- {name: second, command: 'true', dependencies: [first]}\n- {name: first, command: 'true'}\n")
    assert up.run("apply", "-f", str(path)).stdout == "created    second\ncreated    first\n"
    assert up.run("apply", "-f", str(path)).stdout == "unchanged  second\nunchanged  first\n"


def test_workers_queues_and_keys_are_listed(up):
    worker = up.json("workers", "list")["items"][0]
    assert worker["status"] == "live"
    assert "shout" in worker["jobs"]
    assert up.json("queues", "list")["items"][0]["name"] == "default"
    made = up.json("keys", "create", "ci")
    assert made["key"].startswith("hk_")
    up.run("keys", "revoke", made["keyId"])
    assert up.json("doctor")["items"]


def test_the_demo_jobs_exist(up):
    jobs = {job["name"]: job for job in up.json("jobs", "list")["items"]}
    assert {"demo-tick", "demo-primes", "demo-fails", "demo-order", "demo-pipeline"} <= set(jobs)
    assert jobs["demo-report"]["state"] == "paused"
    assert "demo-orders" in up.json("workers", "list")["items"][0]["queues"]
    first = up.json("executions", "list", "--job", "demo-primes")["items"][-1]
    assert up.json("executions", "show", first["executionId"], "--wait")["result"] == {"primes": 5133, "largest": 49999}


def test_bad_input_is_reported(up):
    assert "Did you mean" in up.run("jobs", "show", "demo-tik", code=3).stderr
    up.run("jobs", "create", "demo-tick", "--command", "x", code=4)
    up.run("jobs", "create", "bad name", "--command", "x", code=2)
    up.run("jobs", "create", "never", "--command", "x", "--schedule", "99 * * * *", code=2)
    up.run("executions", "show", "00000000-0000-7000-8000-000000000000", code=3)


def test_sigterm_drains_and_the_state_is_kept(tmp_path):
    with running(tmp_path) as first:
        key = (tmp_path / "admin.key").read_text()
        first.run("jobs", "create", "kept", "--command", "true")
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(10) == 0
    with running(tmp_path) as second:
        assert (tmp_path / "admin.key").read_text() == key
        assert second.json("jobs", "show", "kept")["name"] == "kept"


def test_draining_its_worker_leaves_the_server_running(tmp_path):
    with running(tmp_path) as alone:
        alone.run("workers", "drain", f"embedded@{platform.node()}")
        assert next(line for line in alone.process.stderr if "was drained" in line).startswith("The worker was drained")
        assert alone.json("jobs", "list")["items"] == []
        alone.process.send_signal(signal.SIGTERM)
        assert alone.process.wait(10) == 0


def test_a_second_owner_and_a_taken_port_are_reported_and_nothing_hangs(up):
    again = subprocess.run(
        command("up", "--port", "0", "--data", str(up.folder)), capture_output=True, text=True, timeout=60, check=False
    )
    assert again.returncode == 1
    assert "is in use by" in again.stderr
    port = up.url.rpartition(":")[2]
    taken = subprocess.run(
        command("up", "--port", port, "--store", "sqlite://"), capture_output=True, text=True, timeout=60, check=False,
        cwd=up.folder / "..",
    )  # fmt: skip
    assert taken.returncode == 2
    assert "Cannot listen" in taken.stderr
