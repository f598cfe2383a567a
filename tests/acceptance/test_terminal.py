"""Output of a job cannot control the terminal of its reader."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.fleet import KEY, ROOT, Fleet

EVIL = r"\033]0;PWNED\007\033[2J\033]52;c;cHduZWQ=\007 \033[31mred\033[0m invoice\342\200\256fdp \302\233A"
ALLOWED = ("\x1b[31m", "\x1b[0m", "\x1b[1m", "\x1b[91m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[34m")
COMMANDS = (
    ["executions", "logs", "ID"],
    ["executions", "show", "ID"],
    ["executions", "show", "ID", "-o", "json"],
    ["executions", "show", "ID", "-o", "yaml"],
    ["executions", "list"],
    ["dlq", "list"],
    ["dlq", "show", "ID"],
    ["explain", "ID"],
    ["executions", "artifacts", "ID", "out.txt", "--to", "-"],
    ["jobs", "show", "evil\x1b[2J\u202e"],
)


def on_terminal(fleet: Fleet, args: list[str]) -> str:
    """Run a command on a terminal and return its output."""
    ours, its = pty.openpty()
    env = os.environ | {"HORAE_URL": next(iter(fleet.urls.values())), "HORAE_KEY": KEY, "TERM": "xterm-256color"}
    env |= {"PYTHONPATH": f"{ROOT}/src"}
    argv = [sys.executable, "-m", "horae.cli.main", *args]
    running = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=env, cwd=fleet.folder)
    os.close(its)
    output = b""
    try:
        while piece := os.read(ours, 65_536):
            output += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    running.wait(30)
    return output.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory):
    """Run a job that writes escape sequences; return each command's output on a terminal, and the log on a pipe."""
    folder: Path = tmp_path_factory.mktemp("terminal")
    fleet = Fleet(folder, f"sqlite:///{folder}/horae.db")
    try:
        fleet.add_server("s")
        fleet.add_worker("w")
        script = f"printf '{EVIL}\\n'; printf '{EVIL}\\n' >&2; printf '{EVIL}' > $HORAE_ARTIFACTS/out.txt; exit 3"
        fleet.post("/jobs", {"name": "evil", "command": {"shell": script}, "retries": 0})
        id = fleet.submit("evil")
        fleet.until(id, "failed")
        shown = {}
        for command in COMMANDS:
            args = [id if word == "ID" else word for word in command]
            shown[" ".join(command)] = on_terminal(fleet, args)
        env = os.environ | {"HORAE_URL": next(iter(fleet.urls.values())), "HORAE_KEY": KEY, "PYTHONPATH": f"{ROOT}/src"}
        argv = [sys.executable, "-m", "horae.cli.main", "executions", "logs", id]
        piped = subprocess.run(argv, env=env, cwd=folder, capture_output=True).stdout
    finally:
        fleet.close()
    return shown, piped


@pytest.mark.parametrize("command", [" ".join(command) for command in COMMANDS])
def test_a_terminal_shows_controls_and_obeys_colours_alone(command: str, read):
    shown = read[0][command]

    assert shown.strip()
    left = shown
    for allowed in ALLOWED:
        left = left.replace(allowed, "")
    assert [c for c in left if c in "\x1b\x07\x9b\u202e\r"] == []
    if "logs" in command:
        assert "\\x1b]0;PWNED\\x07\\x1b[2J" in shown
        assert "\x1b[31mred\x1b[0m" in shown  # a log keeps its colours
        assert "invoice\\u202efdp" in shown
    elif "-o" not in command:
        assert "\x1b[31mred" not in shown


def test_a_pipe_gets_a_log_as_it_was_written(read):
    assert b"\x1b]0;PWNED\x07\x1b[2J" in read[1]
    assert "\u202e".encode() in read[1]
