"""Commands: filled-in values stay literal, and a harmful command is stopped while its neighbours continue."""

import asyncio
import logging
import os
import pwd
import sys
from contextlib import asynccontextmanager

import msgspec
import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.features.templates.model.values import read_template
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.resource_limits import ResourceLimits
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.worker.processes.processes import all_processes, count_tasks, mark_of
from horae.worker.processes.spawner import Spawner
from tests.waiting import eventually
from tests.worker.local import Jobs, result, shop

PYTHON = sys.executable
MIB = 1 << 20
IS_ROOT = os.geteuid() == 0

# Injection

PAYLOADS = (
    *(
        ";id",
        "$(id)",
        "`id`",
        "|id",
        "&& id",
        "a\nid\n",
        "a\r\nid",
        "'; id; '",
        '"; id; "',
        "${IFS}id",
        "$HOME",
        "~root",
        "*",
    ),
    *(
        "-oProxyCommand=id",
        "--upload-pack=id",
        "--",
        "-",
        "--exec=id",
        "\\",
        "\\n",
        "%s%n",
        "{a,b}",
        "!!",
        "#",
        "<(id)",
    ),
    *("é\u2028\u202e", " ", "", "a b", "\t", "${params.x}", "$${params.x}", "\x1b[2J", "\x7f"),
)
ECHO = "import sys, json; print(json.dumps(sys.argv[1:]))"


async def test_values_filled_into_argv_stay_one_literal_argument():
    task = CommandTask(argv=(PYTHON, "-c", ECHO, "--", "${params.x}", "x=${params.x}"))
    async with shop(concurrency=8) as it:
        for payload in PAYLOADS:
            parcel = it.submit(task, {"x": payload})
            assert (await it.outcome(parcel)).outcome == "success"
            assert msgspec.json.decode(it.gateway.lines(parcel, 0, "stdout")[0]) == ["--", payload, f"x={payload}"]


async def test_values_that_no_argument_can_hold_are_refused():
    async with shop() as it:
        for n, task in enumerate(
            (CommandTask(argv=("echo", "${params.x}")), CommandTask(argv=("echo",), cwd="${params.x}"))
        ):
            error = (await it.run(task, {"x": "a\0b"}, name=f"nul-{n}")).error
            assert error.permanent, error


async def test_params_reach_a_shell_only_through_the_environment():
    async with shop() as it:
        for payload in PAYLOADS:
            parcel = it.submit(
                CommandTask(shell='printf %s "$X"; printf %s "$HORAE_PARAMS" >&2'),
                {"x": payload},
                env={"X": "${params.x}"},
            )
            assert (await it.outcome(parcel)).outcome == "success"
            assert "\n".join(it.gateway.lines(parcel, 0, "stdout")).rstrip() == payload.replace("\r", "").rstrip()
            assert msgspec.json.decode("\n".join(it.gateway.lines(parcel, 0, "stderr"))) == {"x": payload}


@pytest.mark.parametrize("line", ["backup ${params.day}", "a; echo ${ params.x } b", "${params['x']}"])
def test_a_shell_line_with_an_expression_is_refused(line):
    with pytest.raises(BadInput, match=r"A shell line cannot have placeholders.*environment"):
        parse_definition({"name": "a", "command": {"shell": line}}, namespace_name="default", created_at=0)


@pytest.mark.parametrize("line", ["echo ${HOME} ${params} ${params:-x} ${params[0]}", "echo $params.x"])
def test_shell_variables_are_left_to_the_shell(line):
    parse_definition({"name": "a", "command": {"shell": line}}, namespace_name="default", created_at=0)


@pytest.mark.parametrize(
    "job",
    [
        {"command": {"shell": "backup ${with.region}"}},
        {"workflow": {"steps": [{"name": "a", "command": {"shell": "backup ${with.region}"}}]}},
    ],
)
def test_templates_do_not_fill_shell_lines(job):
    with pytest.raises(BadInput, match="shell line"):
        read_template("t", {"parameters": {"region": {"type": "string"}}, "job": job})


@pytest.mark.parametrize("payload", PAYLOADS)
def test_templates_fill_words_of_a_command_without_adding_words(payload):
    from horae.features.templates.model.values import fill_placeholders

    job = {"command": "backup --to=${with.x} ${with.x}", "params": {"command": "say ${with.x}"}}
    filled = fill_placeholders(job, {"x": payload}, "job")

    assert filled["command"] == ["backup", f"--to={payload}", payload]
    assert filled["params"] == {"command": f"say {payload}"}


# Poison


@asynccontextmanager
async def beside_others(tmp_path, **settings):
    """Run a worker with another command, which must not be affected, and that can run commands afterwards."""
    async with shop(concurrency=4, **settings) as it:
        wait = f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo end"
        neighbour = it.submit(CommandTask(shell=wait), name="neighbour")
        await eventually((tmp_path / "began").exists)
        yield it
        (tmp_path / "go").touch()
        assert (await it.outcome(neighbour)).outcome == "success"
        assert it.gateway.lines(neighbour, 0, "stdout") == ["end"]
        assert (await it.run(CommandTask(shell="true"), name="after")).outcome == "success"
        assert len(it.transport.registered) == 1, "the worker is the one that it was"


def marked(text: str) -> list[int]:
    """Return live processes that were started with an environment variable."""
    return [one.pid for one in all_processes() if one.is_alive and mark_of(one.pid, b"POISON") == text.encode()]


# A bomb with its own limit: every fork takes one of 300 tokens, and leftover processes end by themselves.
BOMB = """
import os, resource, signal
reader, writer = os.pipe()
os.write(writer, b"." * 300)
os.set_blocking(reader, False)
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
signal.alarm(20)
while True:
    try:
        if os.read(reader, 1) and os.fork() == 0:
            signal.alarm(20)
            {act}
    except OSError:
        pass
"""


@pytest.mark.parametrize("act", ["pass", "os.setsid()", "os.setsid(); os.fork() and os._exit(0); signal.alarm(20)"])
async def test_a_fork_bomb_is_stopped(tmp_path, act):
    async with beside_others(tmp_path) as it:
        task = CommandTask(argv=(PYTHON, "-S", "-c", BOMB.format(act=act)), limits=ResourceLimits(processes=40))
        error = (await it.run(task, name="bomb", env={"POISON": str(tmp_path)})).error

        assert error.type == "LimitExceeded"
        assert "more than 40 processes" in error.message
        assert "the job's limits.processes" in error.message
        await eventually(lambda: not marked(str(tmp_path)))


HOG = "b = []\nwhile True: b.append(bytearray(b'x' * 2**20)); len(b) < 3000 or exit()"


@pytest.mark.parametrize(
    "program",
    [HOG, f"import os\nfor _ in range(4):\n    if os.fork() == 0: break\nfor _ in range(1): exec({HOG!r})\n"],
    ids=["one", "family"],
)
async def test_a_memory_hog_is_stopped(tmp_path, program):
    async with beside_others(tmp_path) as it:
        task = CommandTask(argv=(PYTHON, "-S", "-c", program), limits=ResourceLimits(memory=150 * MIB))
        outcome = await it.run(task, name="hog", env={"POISON": str(tmp_path)})

        assert "limits.memory" in outcome.error.message, outcome.error
        assert "150 MiB" in outcome.error.message
        await eventually(lambda: not marked(str(tmp_path)))


async def test_the_workers_limits_apply_to_jobs_without_limits(tmp_path):
    async with beside_others(tmp_path, limits=ResourceLimits(memory=150 * MIB, processes=50)) as it:
        error = (await it.run(CommandTask(argv=(PYTHON, "-S", "-c", HOG)), name="hog")).error

        assert (error.type, error.permanent) == ("LimitExceeded", False)
        assert "of memory" in error.message
        assert "Raise the worker's command_memory" in error.message


async def test_endless_output_is_stopped_and_its_log_marked_as_cut(tmp_path):
    async with beside_others(tmp_path, limits=ResourceLimits(output=40 * MIB)) as it:
        parcel = it.submit(CommandTask(shell="exec yes $(printf %01000d 7)"), name="endless")
        error = (await it.outcome(parcel)).error

        assert error.type == "LimitExceeded"
        assert "more than 40 MiB of output" in error.message
        assert "command_output" in error.message
        cut, left_out = await eventually(lambda: it.gateway.lines(parcel, 0, "log"))
        assert cut.startswith("WARNING the log is cut here")
        assert "were left out here" in left_out
        assert sum(map(len, it.gateway.lines(parcel, 0, "stdout"))) < 16 * MIB


async def test_a_crash_affects_only_its_own_execution(tmp_path):
    async with beside_others(tmp_path) as it:
        task = CommandTask(argv=(PYTHON, "-S", "-c", "import ctypes; ctypes.string_at(0)"))
        error = (await it.run(task, name="crash")).error

        assert (error.type, "SIGSEGV" in error.message) == ("Signal", True)


async def test_processor_time_of_a_process_tree_is_limited(tmp_path):
    async with beside_others(tmp_path) as it:
        spin = "import os; os.fork(); os.fork()\nwhile True: pass"
        task = CommandTask(argv=(PYTHON, "-S", "-c", spin), limits=ResourceLimits(cpu=SECOND // 2))
        error = (await it.run(task, name="spin")).error

        assert error.type == "LimitExceeded"
        assert "more than 0.5 s of processor time" in error.message


async def test_files_are_limited_in_number_and_size(tmp_path):
    async with beside_others(tmp_path) as it:
        limits = ResourceLimits(files=20, file_size=MIB)
        many = CommandTask(argv=(PYTHON, "-S", "-c", "x = [open('/dev/null') for _ in range(50)]"), limits=limits)
        assert "Too many open files" in (await it.run(many, name="many")).error.message
        large = CommandTask(shell=f"exec head -c 5000000 /dev/zero > {tmp_path}/large", limits=limits)
        error = (await it.run(large, name="large")).error
        assert (error.type, (tmp_path / "large").stat().st_size) == ("LimitExceeded", MIB)
        assert "more than 1 MiB to one file" in error.message
        ulimit = CommandTask(shell="ulimit -n; ulimit -n 4096 || echo stays", limits=limits)
        parcel = it.submit(ulimit, name="raise")
        await it.outcome(parcel)
        assert it.gateway.lines(parcel, 0, "stdout")[0] == "20"


def hog() -> None:
    held = []
    while len(held) < 3000:
        held.append(bytearray(b"x" * MIB))


def pid() -> int:
    return os.getpid()


def spin() -> None:
    while True:
        pass


def chatter() -> None:
    while True:
        print("x" * 1000)


def write(stdout: int, stderr: int, log: int) -> None:
    print("o" * stdout)
    print("e" * stderr, file=sys.stderr)
    logging.getLogger("app").warning("l" * log)


WRITE = "import sys; print('o' * int(sys.argv[1])); print('e' * int(sys.argv[2]), file=sys.stderr)"


@pytest.mark.parametrize(
    ("sizes", "fits"), [((4000, 4000, 0), True), ((9000, 2000, 0), False), ((6000, 6000, 0), False)]
)
async def test_the_limit_of_the_output_counts_all_streams_of_a_command_together(sizes, fits):
    argv = (PYTHON, "-S", "-c", WRITE, *map(str, sizes))
    async with shop() as it:
        outcome = await it.run(CommandTask(argv=argv, limits=ResourceLimits(output=10_000)), name="write")
    assert (outcome.outcome == "success") is fits, outcome
    assert fits or "more than 9.766 KiB of output" in outcome.error.message


async def test_output_counts_from_the_first_byte(monkeypatch):
    """Also what a command writes before the worker knows that it has started."""
    spawn = Spawner.spawn

    async def slowly(self, *args):
        child = await spawn(self, *args)
        await asyncio.shield(child.exited)
        return child

    monkeypatch.setattr(Spawner, "spawn", slowly)
    argv = (PYTHON, "-S", "-c", WRITE, "6000", "6000")
    async with shop() as it:
        outcome = await it.run(CommandTask(argv=argv, limits=ResourceLimits(output=10_000)), name="write")
    assert (outcome.outcome, outcome.error.type) == ("failed", "LimitExceeded")


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [((3000, 3000, 3000), True), ((6000, 6000, 0), False), ((0, 0, 12_000), False), ((4000, 4000, 4000), False)],
)
async def test_the_limit_of_the_output_counts_all_streams_of_a_function_together(sizes, fits):
    params = dict(zip(("stdout", "stderr", "log"), sizes, strict=True))
    async with shop(Jobs(write)) as it:
        task = PythonTask(function="write", limits=ResourceLimits(output=10_000))
        outcome = await it.run(task, params, name="write")
    assert (outcome.outcome == "success") is fits, outcome
    assert fits or "more than 9.766 KiB of output" in outcome.error.message


async def test_functions_in_processes_have_limits_too(tmp_path):
    async with shop(Jobs(hog, pid, spin, chatter)) as it:
        for function, limits in (("spin", ResourceLimits(cpu=SECOND)), ("chatter", ResourceLimits(output=5 * MIB))):
            error = (await it.run(PythonTask(function=function, limits=limits), name=function)).error
            assert (error.type, "the job's limits." in error.message) == ("LimitExceeded", True), error
        error = (await it.run(PythonTask(function="hog", limits=ResourceLimits(memory=200 * MIB)), name="hog")).error
        assert "limits.memory" in error.message or error.type == "MemoryError"
        limited = PythonTask(function="pid", limits=ResourceLimits(memory=200 * MIB))
        first, second = [result(await it.run(limited, name="pid")) for _ in range(2)]
        assert len({os.getpid(), first, second}) == 3, "one that is limited serves one execution"
    async with shop(Jobs(hog), limits=ResourceLimits(memory=200 * MIB)) as it:
        error = (await it.run(PythonTask(function="hog", isolation="process"), name="hog")).error
        assert (error.type, "command_memory" in error.message) == ("LimitExceeded", True)


# As another user


@pytest.mark.skipif(not IS_ROOT, reason="only root may run commands as others")
async def test_a_command_runs_as_another_user_with_only_that_users_group(tmp_path):
    nobody = pwd.getpwnam("nobody")
    script = 'id -u; id -G; echo "$HOME $USER"; echo kept > "$HORAE_ARTIFACTS/a.txt"; cat /etc/shadow'
    script += """; echo '{"result": 7}' >> "$HORAE_OUTPUT\""""
    async with shop() as it:
        parcel = it.submit(CommandTask(shell=script, user="nobody"))
        outcome = await it.outcome(parcel)

        assert (outcome.outcome, result(outcome)) == ("success", 7), outcome
        said = it.gateway.lines(parcel, 0, "stdout")
        assert said[:3] == [str(nobody.pw_uid), str(nobody.pw_gid), f"{nobody.pw_dir} nobody"]
        assert len(said) == 3, "it may not read what only root reads"
        assert it.transport.artifacts["a.txt"][1] == b"kept\n"


@pytest.mark.skipif(not IS_ROOT, reason="only root may run commands as others")
async def test_the_kernel_counts_another_users_processes():
    async with shop() as it:
        told = CommandTask(shell="cat /proc/self/limits", user="nobody", limits=ResourceLimits(processes=20))
        parcel = it.submit(told)
        await it.outcome(parcel)

        line = next(line for line in it.gateway.lines(parcel, 0, "stdout") if line.startswith("Max processes"))
        soft, hard = line.split()[2:4]
        assert soft == hard
        # Other processes of that user, such as the tests' PostgreSQL, may start and end meanwhile.
        assert int(hard) <= 2 * 20 + 256 + count_tasks(pwd.getpwnam("nobody").pw_uid) + 200


@pytest.mark.skipif(not IS_ROOT, reason="only root may run commands as others")
async def test_another_user_cannot_read_files_through_the_worker(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"result": "secret"}\n')
    secret.chmod(0o600)
    steal = (
        f'ln -sf {secret} "$HORAE_OUTPUT"; ln -s {secret} "$HORAE_ARTIFACTS/a"; ln -s {tmp_path} "$HORAE_ARTIFACTS/b"'
    )
    async with shop() as it:
        outcome = await it.run(CommandTask(shell=steal, user="nobody"))

        assert result(outcome) is None
        assert it.transport.artifacts == {}


@pytest.mark.skipif(not IS_ROOT, reason="only root may run commands as others")
@pytest.mark.parametrize(
    ("user", "settings", "said"),
    [
        ("root", {}, "command_users"),
        ("daemon", {"command_users": ("nobody",)}, "command_users"),
        ("no-such-user-here", {}, "Create it there"),
    ],
)
async def test_a_command_runs_only_as_a_user_that_the_worker_allows(user, settings, said):
    async with shop(**settings) as it:
        error = (await it.run(CommandTask(shell="id", user=user))).error

        assert (error.type, error.permanent) == ("CannotRunAs", True)
        assert said in error.message


@pytest.mark.skipif(not IS_ROOT, reason="only root may run commands as others")
async def test_a_worker_announces_the_users_of_its_commands(tmp_path):
    async with shop(command_user="nobody") as it:
        parcel = it.submit(CommandTask(shell="id -un"))
        await it.outcome(parcel)
        assert it.gateway.lines(parcel, 0, "stdout") == ["nobody"]
    async with shop(command_user="nobody", command_users=("root",)) as it:
        parcel = it.submit(CommandTask(shell="id -un", user="root"))
        await it.outcome(parcel)
        assert it.gateway.lines(parcel, 0, "stdout") == ["root"]


async def test_a_worker_without_root_reports_it(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    async with shop() as it:
        error = (await it.run(CommandTask(shell="id", user="nobody"))).error

        assert (error.type, "Start the worker as root" in error.message) == ("CannotRunAs", True)
