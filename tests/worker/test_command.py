"""Commands: real processes, their output, and their ends."""

import asyncio
import os
import signal
import sys
import sysconfig
from pathlib import Path

import msgspec
import pytest

from horae.env import SECOND
from horae.model.definitions.tasks import CommandTask
from horae.model.fleet.protocol import LOG_LIMIT
from tests.waiting import eventually
from tests.worker.local import result, shop

PYTHON = sys.executable


def script(text: str) -> CommandTask:
    return CommandTask(argv=(PYTHON, "-c", text))


def shell(line: str) -> CommandTask:
    return CommandTask(shell=line)


def alive(pid: int) -> bool:
    """Return whether a process runs; a dead one that is not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


async def pids_in(folder: Path, count: int) -> list[int]:
    """Return the pids that commands wrote into files."""

    def found() -> list[int]:
        texts = [path.read_text() for path in folder.glob("*.pid")]
        return [int(text) for text in texts if text.strip()] if len(texts) == count else []

    return await eventually(lambda: pids if len(pids := found()) == count else None)


async def test_a_command_runs_and_its_output_is_its_log():
    async with shop() as it:
        parcel = it.submit(shell("echo out; echo err >&2; printf last"))
        outcome = await it.outcome(parcel)

        assert (outcome.outcome, outcome.exit_code) == ("success", 0)
        assert it.gateway.lines(parcel, 0, "stdout") == ["out", "last"]
        assert it.gateway.lines(parcel, 0, "stderr") == ["err"]


async def test_output_is_seen_while_the_command_runs(tmp_path):
    async with shop() as it:
        parcel = it.submit(shell(f"echo first; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"))
        await it.line(parcel, "first")

        (tmp_path / "go").touch()

        assert (await it.outcome(parcel)).outcome == "success"


@pytest.mark.parametrize("payload", [";id", "$(id)", "a\nb", "-oProxyCommand=x", "--upload-pack=x", "`id`", "é\u2028"])
async def test_params_fill_whole_arguments_and_stay_literal(payload):
    async with shop() as it:
        task = CommandTask(
            argv=(PYTHON, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", "--", "x=${params.x}")
        )
        parcel = it.submit(task, {"x": payload})
        await it.outcome(parcel)

        assert msgspec.json.decode(it.gateway.lines(parcel, 0, "stdout")[0]) == ["--", f"x={payload}"]


async def test_a_shell_line_is_no_template_and_gets_params_by_environment():
    async with shop() as it:
        parcel = it.submit(shell("echo \"$HORAE_PARAMS\" '${params.x}'"), {"x": "$(id)"}, params={"y": 1})
        await it.outcome(parcel)

        assert it.gateway.lines(parcel, 0, "stdout") == ['{"y":1,"x":"$(id)"} ${params.x}']


async def test_the_environment_has_the_jobs_variables_and_few_of_the_workers(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    monkeypatch.setenv("LET_THROUGH", "y")
    async with shop(pass_env=("LET_THROUGH",)) as it:
        parcel = it.submit(CommandTask(argv=("env",)), {"n": 7}, env={"MINE": "n=${params.n}"}, name="envy", priority=4)
        await it.outcome(parcel)

        env = dict(line.partition("=")[::2] for line in it.gateway.lines(parcel, 0, "stdout"))
        assert env["MINE"] == "n=7"
        assert env["LET_THROUGH"] == "y"
        assert "SECRET_OF_THE_WORKER" not in env
        assert (env["HORAE_JOB"], env["HORAE_ATTEMPT"], env["HORAE_PRIORITY"]) == ("envy", "1", "4")
        assert env["HORAE_TOKEN"] == str((1 << 32) + 1)
        assert env["HORAE_EXECUTION_ID"] == str(parcel)
        assert len(env["HORAE_GUARD"].rpartition(".")[2]) == 16, "others cannot guess it"
        assert env["HORAE_SCHEDULED_AT"].endswith("Z")
        assert msgspec.json.decode(env["HORAE_PARAMS"]) == {"n": 7}
        assert not Path(env["HORAE_OUTPUT"]).exists(), "its folder goes with it"


@pytest.mark.parametrize("path", ["/usr/bin:/bin", f"/bin:{sysconfig.get_path('scripts')}"])
async def test_the_workers_own_programs_are_found_without_activating_anything(path, monkeypatch):
    monkeypatch.setenv("PATH", path)
    async with shop() as it:
        parcel = it.submit(CommandTask(argv=("horae", "report", "--progress", "50", "--result", '"done"')))
        outcome = await it.outcome(parcel)

        assert (outcome.outcome, result(outcome)) == ("success", "done")


async def test_progress_stays_within_what_a_server_reads(tmp_path):
    async with shop() as it:
        wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
        parcel = it.submit(shell(f"echo '{{\"progress\": 500}}' >> $HORAE_OUTPUT; {wait}"))
        assert (await eventually(lambda: it.gateway.progress))[0].percent == 100
        (tmp_path / "go").touch()
        await it.outcome(parcel)


async def test_a_command_reports_through_a_file(tmp_path):
    lines = '{"progress": 50, "message": "half"}\\n{"result": {"rows": 3}}\\nnonsense\\n{"progress": "x"}\\n'
    async with shop() as it:
        wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
        parcel = it.submit(
            shell(f"printf '{lines}' >> $HORAE_OUTPUT; {wait}; printf '{{\"result\": 5}}' >> $HORAE_OUTPUT")
        )
        progress = await eventually(lambda: it.gateway.progress)
        assert (progress[0].percent, progress[0].message) == (50, "half")
        await it.line(parcel, "nonsense")

        (tmp_path / "go").touch()

        assert result(await it.outcome(parcel)) == 5


async def test_an_exit_code_is_a_failure_with_the_last_output():
    async with shop() as it:
        outcome = await it.run(shell("echo broken >&2; exit 3"))

        assert (outcome.outcome, outcome.exit_code, outcome.error.type) == ("failed", 3, "ExitCode")
        assert "broken" in outcome.error.message
        assert not outcome.error.permanent


async def test_a_signal_is_a_failure_too():
    async with shop() as it:
        outcome = await it.run(shell("kill -SEGV $$"))

        assert (outcome.outcome, outcome.exit_code, outcome.error.type) == ("failed", 128 + signal.SIGSEGV, "Signal")


@pytest.mark.parametrize(
    ("task", "type", "said"),
    [
        (CommandTask(argv=("no-such-command-here",)), "CommandNotFound", "Install it"),
        (CommandTask(argv=("/etc/hostname",)), "CommandNotExecutable", "executable"),
        (CommandTask(argv=("true",), cwd="/no/such/folder"), "DirectoryNotFound", "/no/such/folder"),
    ],
)
async def test_a_missing_program_is_a_platform_failure(task, type, said):
    async with shop() as it:
        error = (await it.run(task)).error

        assert (error.type, error.kind, error.permanent) == (type, "platform", False)
        assert said in error.message


@pytest.mark.parametrize(
    ("task", "type", "said"),
    [
        (CommandTask(argv=("echo", "${params.missing}")), "BadParams", "missing"),
        (CommandTask(argv=("echo", "${params.nul}")), "BadParams", "refuses"),
        (CommandTask(argv=("echo", "${params +}")), "BadDefinition", "expression"),
    ],
)
async def test_a_command_that_cannot_start_fails_with_a_remedy(task, type, said):
    async with shop() as it:
        outcome = await it.run(task, {"nul": "a\0b"})

        assert (outcome.outcome, outcome.error.type, outcome.error.permanent) == ("failed", type, True)
        assert said in outcome.error.message


STUBBORN = """
import os, signal, subprocess, sys, time, pathlib
folder = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import os,signal,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
code += "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code, str(folder / "grandchild.pid")])
subprocess.Popen([sys.executable, "-c", code, str(folder / "away.pid")], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        (folder / "daemon.pid").write_text(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
(folder / "main.pid").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.parametrize("reason", ["cancel", "timeout"])
async def test_stopping_a_command_leaves_no_process(tmp_path, reason):
    async with shop(heartbeat=1.0) as it:
        timeout = 2 * SECOND if reason == "timeout" else None
        parcel = it.submit(
            CommandTask(argv=(PYTHON, "-c", STUBBORN, str(tmp_path))), timeout=timeout, grace=SECOND // 4
        )
        pids = await pids_in(tmp_path, 4)
        if reason == "cancel":
            it.gateway.ask(parcel, 0, "cancel")

        outcome = await it.outcome(parcel)

        assert outcome.outcome == ("cancelled" if reason == "cancel" else "failed")
        assert outcome.error is None or outcome.error.type == "RunTimeout"
        await eventually(lambda: not any(map(alive, pids)), within=5)


async def test_a_command_may_clean_up_when_it_is_told_to_stop(tmp_path):
    text = f"trap 'echo cleaning; touch {tmp_path}/clean; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    async with shop(heartbeat=1.0) as it:
        parcel = it.submit(shell(text), grace=10 * SECOND)
        await it.line(parcel, "ready")
        it.gateway.ask(parcel, 0, "preempt")

        outcome = await it.outcome(parcel)

        assert (tmp_path / "clean").exists()
        assert outcome.outcome == "success", "it ended well although it was told to stop"


async def test_a_grandchild_may_finish_after_its_parent_was_asked_to_stop(tmp_path):
    inner = f"trap 'sleep 0.3; touch {tmp_path}/done; exit' TERM; echo ready; while :; do sleep 0.02; done"
    async with shop(heartbeat=1.0) as it:
        parcel = it.submit(shell(f'sh -c "{inner}"; :'), grace=10 * SECOND)
        await it.line(parcel, "ready")
        it.gateway.ask(parcel, 0, "cancel")

        assert (await it.outcome(parcel)).outcome == "cancelled"
        assert (tmp_path / "done").exists()


async def test_background_processes_end_with_their_command(tmp_path):
    line = f"sleep 600 & echo $! > {tmp_path}/a.pid; setsid sh -c 'echo $$ > {tmp_path}/b.pid; exec sleep 600' & "
    async with shop() as it:
        outcome = await it.run(shell(line + f"while [ ! -s {tmp_path}/b.pid ]; do sleep 0.02; done; echo bye"))
        pids = await pids_in(tmp_path, 2)

        assert outcome.outcome == "success"
        await eventually(lambda: not any(map(alive, pids)), within=5)


async def test_the_end_of_a_command_does_not_affect_others(tmp_path):
    async with shop() as it:
        wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
        stays = it.submit(shell(f"(setsid sleep 600 &) ; echo up; {wait}; pgrep -f 'sleep 600' | wc -l"))
        await it.line(stays, "up")
        assert (await it.run(shell("true"), name="other")).outcome == "success"
        (tmp_path / "go").touch()
        await it.outcome(stays)

        assert int(it.gateway.lines(stays, 0, "stdout")[-1]) >= 1


async def test_endless_output_is_cut_and_does_not_affect_others():
    async with shop(heartbeat=1.0) as it:
        noisy = it.submit(
            script("import sys\nfor _ in range(3000): sys.stdout.write('x' * 10000 + '\\n')"), name="noisy"
        )
        assert (await it.run(shell("echo fine"), name="other")).outcome == "success"
        assert (await it.outcome(noisy)).outcome == "success"
        lines = it.gateway.lines(noisy, 0)

        assert [line for line in lines if "the log is cut here" in line]
        (left,) = [int(line.split()[1]) for line in lines if "were left out here" in line]
        assert left + len(lines) - 2 == 3000
        assert lines[-1] == "x" * 10000
        assert sum(map(len, lines)) < 17 * 1024 * 1024


async def test_broken_text_becomes_readable():
    async with shop() as it:
        parcel = it.submit(script("import os; os.write(1, b'a\\xff\\x00b\\n' + b'y' * 40000 + b'\\n')"))
        await it.outcome(parcel)
        lines = it.gateway.lines(parcel, 0)

        assert lines[0] == "a\ufffd\ufffdb"
        assert "".join(lines[1:]) == "y" * 40000
        assert max(map(len, lines)) <= 16 * 1024


async def test_the_separate_end_of_a_long_line_is_not_a_line(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with shop() as it:
        write = f"os.write(1, b'y' * 20000); open({str(gate)!r}).read(); os.write(1, b'\\r\\nz\\n')"
        parcel = it.submit(script(f"import os; {write}"))
        await eventually(lambda: "".join(it.gateway.lines(parcel, 0)) == "y" * 20000)
        await asyncio.to_thread(gate.write_text, "")
        await it.outcome(parcel)
        lines = it.gateway.lines(parcel, 0)

        assert [line[-1:] for line in lines] == ["y", "y", "z"]


async def test_params_too_large_for_the_environment_come_as_a_file():
    text = "import json, os; print(len(json.load(open(os.environ['HORAE_PARAMS_FILE']))['x']))"
    async with shop() as it:
        parcel = it.submit(script(text), {"x": "z" * 200_000})
        await it.outcome(parcel)

        assert it.gateway.lines(parcel, 0) == ["200000"]


async def test_a_result_that_is_too_large_fails_the_item():
    async with shop() as it:
        outcome = await it.run(
            script("import os; open(os.environ['HORAE_OUTPUT'], 'w').write('{\"result\": \"' + 'x' * 1100000 + '\"}')")
        )

        assert (outcome.outcome, outcome.error.type, outcome.error.permanent) == ("failed", "ResultTooLarge", True)


async def test_a_lost_guard_fails_its_commands_and_is_replaced(tmp_path):
    async with shop() as it:
        parcel = it.submit(CommandTask(argv=(PYTHON, "-c", STUBBORN, str(tmp_path))))
        pids = await pids_in(tmp_path, 4)
        os.kill(it.worker.spawner._guard.pid, signal.SIGKILL)

        assert (await it.outcome(parcel)).error.type == "WorkerProcessDied"
        await eventually(lambda: not any(map(alive, pids)))
        assert (await it.run(shell("echo again"), name="again")).outcome == "success"


async def test_many_commands_run_at_once(tmp_path):
    count = 60
    async with shop(concurrency=count) as it:
        wait = f"touch {tmp_path}/$HORAE_EXECUTION_ID; while [ ! -e {tmp_path}/go ]; do sleep 0.2; done"
        parcel = it.submit(shell(wait), *[{"i": i} for i in range(count)])
        await eventually(lambda: len(list(tmp_path.iterdir())) == count)
        (tmp_path / "go").touch()

        for index in range(count):
            assert (await it.outcome(parcel, index)).outcome == "success"


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_a_thousand_stopped_commands_leave_no_process(tmp_path):
    """F33: process groups, grandchildren that left the session, ignored SIGTERM."""
    away = f'trap "" TERM; echo $$ > {tmp_path}/$HORAE_EXECUTION_ID.pid; sleep 600'
    line = f"trap '' TERM; (setsid sh -c '{away}' &); sleep 600"
    async with shop(concurrency=50) as it:
        parcel = it.submit(shell(line), *[{}] * 1000, timeout=2 * SECOND, grace=SECOND // 10)
        for index in range(1000):
            assert (await it.outcome(parcel, index, within=300)).error.type == "RunTimeout"
        pids = await pids_in(tmp_path, 1000)

        await eventually(lambda: not any(map(alive, pids)))


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_a_gigabyte_of_output_does_not_affect_others():
    """F40: the worker survives, other executions run meanwhile, the log stays within its limit."""
    async with shop(heartbeat=1.0) as it:
        noisy = it.submit(script("import os\nfor _ in range(16384): os.write(1, b'x' * 65535 + b'\\n')"), name="noisy")
        others = [await it.run(shell("true"), name="other") for _ in range(20)]
        assert {outcome.outcome for outcome in others} == {"success"}
        assert (await it.outcome(noisy, within=300)).outcome == "success"

        assert sum(map(len, it.gateway.lines(noisy, 0))) < LOG_LIMIT


async def test_an_unfinished_line_is_shown_and_stored_once(tmp_path):
    gate = tmp_path / "gate"
    script = f"""
import os, sys, time
def wait(name):
    while not os.path.exists({str(gate)!r} + name):
        time.sleep(0.01)
sys.stderr.write("sure? ")
for percent in range(1000):
    sys.stdout.write(f"\\r{{percent}} of 1000")
sys.stdout.flush(); sys.stderr.flush()
wait("1")
print("\\rready\\r")
sys.stdout.flush()
wait("2")
sys.stderr.write("yes")
"""
    async with shop() as it:
        parcel = it.submit(CommandTask(argv=(sys.executable, "-c", script)))
        await eventually(lambda: ["999 of 1000", "sure? "] in [sorted(open) for open in it.gateway.open])
        assert it.gateway.lines(parcel, 0) == []
        Path(f"{gate}1").touch()
        await eventually(lambda: it.gateway.lines(parcel, 0) and it.gateway.open[-1] == ["sure? "])
        Path(f"{gate}2").touch()
        assert (await it.outcome(parcel)).outcome == "success"
        assert it.gateway.lines(parcel, 0) == ["ready", "sure? yes"]
        assert len(it.gateway.open) < 10
