"""The environment and arguments of a server or a worker are hidden from other processes of its user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from horae.cli.hiding import SECRET_FLAGS, without_secrets
from horae.cli.main import cli
from horae.cli.reference import walk
from tests.acceptance.fleet import KEY, Fleet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")
PASSWORD = "a-password-for-jobs"
# A command reads the environments of all its parent processes.
LOOK = r"""
p=$PPID
while [ "$p" -gt 1 ]; do
    echo "process $p"
    tr '\0' '\n' < /proc/$p/environ
    tr '\0' '\n' < /proc/$p/cmdline
    p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status)
done
"""


def test_a_command_finds_no_key_in_its_parent_processes(tmp_path: Path):
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db")
    try:
        fleet.add_server("s")
        worker = fleet.add_worker("w", HORAE_SECRET_ENV="JOB_PASSWORD", JOB_PASSWORD=PASSWORD)
        fleet.post("/jobs", {"name": "look", "command": {"shell": LOOK}})
        id = fleet.submit("look")
        assert fleet.until(id, "success", "failed")["status"] == "success"
        environments = [line["text"] for line in fleet.get(f"/executions/{id}/logs?limit=1000")["items"]]
        server = Path(f"/proc/{fleet.servers['s'].pid}/environ").read_bytes()
    finally:
        fleet.close()

    assert f"process {worker.pid}" in environments
    assert any(line.startswith("PATH=") for line in environments)
    assert [line for line in environments if KEY in line or PASSWORD in line] == []
    assert KEY.encode() not in server


# An unprivileged process that hides itself, and a child that tries to read it.
READ = """
import os, sys
from horae.cli import hiding
from horae.worker.processes.guard import prctl
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    prctl(hiding.PR_SET_DUMPABLE, 1)
hiding._restart = lambda flags: None
file, sys.argv = sys.argv[1], ["horae", *sys.argv[2:]]
hiding.hide()
if os.fork() == 0:
    try:
        open(f"/proc/{os.getppid()}/{file}", "rb").close()
    except PermissionError:
        os._exit(13)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.parametrize("command", SECRET_FLAGS, ids=" ".join)
@pytest.mark.parametrize("file", ["environ", "maps", "mem", "fd/0"])
def test_processes_of_the_same_user_cannot_read_its_memory(file: str, command: tuple[str, ...]):
    argv = [sys.executable, "-c", READ, file, *command]

    assert subprocess.run(argv, stdin=subprocess.DEVNULL).returncode == 13
    if file in ("environ", "maps"):  # kernels differ in their protection of other files
        assert subprocess.run(argv, stdin=subprocess.DEVNULL, env=os.environ | {"HORAE_DEBUG": "1"}).returncode == 0


def test_flags_with_secrets_become_variables():
    flags = SECRET_FLAGS["worker",]
    argv = ["python", "horae", "worker", "--key", "k", "--name", "w", "--enrol=t=1"]
    assert without_secrets(argv, flags) == (
        ["python", "horae", "worker", "--name", "w"], {"HORAE_KEY": "k", "HORAE_ENROL": "t=1"},
    )  # fmt: skip
    assert without_secrets(["horae", "worker", "--key"], flags) == (["horae", "worker", "--key"], {})


def test_all_names_of_an_option_with_a_secret_are_hidden():
    commands = dict(walk(cli))
    for command, flags in SECRET_FLAGS.items():
        options = commands[" ".join(command)].params if flags else ()
        secret = [option for option in options if option.name in ("key", "api_key", "enrol", "store")]
        assert flags == {flag: f"HORAE_{option.name.upper()}" for option in secret for flag in option.opts}
