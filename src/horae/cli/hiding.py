"""Protection of a long-running process's secrets from other processes of its user, such as the commands that it runs.

/proc shows the arguments and the environment of a process as they were at its start, for as long as it lives.
Therefore, a server or worker that was started with secrets starts its program again, under the same process id, with
the public variables only. The secret variables are in a file in memory, which the new program reads and closes. Then
the program asks the kernel to deny other processes of its user access to its memory and environment, and to write no
core dump. Nothing protects against root.
"""

import json
import os
import sys

LONG_RUNNING = ("up", "server", "worker")
SECRET_FLAGS = {"--key": "HORAE_KEY", "--enrol": "HORAE_ENROL"}
HANDED_OVER = "HORAE_HANDED_OVER"  # the variable with the descriptor of the file in memory
PR_SET_DUMPABLE = 4


def hide() -> None:
    """Hide the environment and the memory of a long-running command. With HORAE_DEBUG, debuggers may still attach."""
    if sys.platform != "linux" or not set(sys.argv[1:2]) & set(LONG_RUNNING):
        return
    from horae.worker.processes.guard import prctl

    if HANDED_OVER in os.environ:
        load_handed_over()
    else:
        _restart()
    if not os.environ.get("HORAE_DEBUG"):
        prctl(PR_SET_DUMPABLE, 0)


def load_handed_over() -> None:
    """Load the variables from the file in memory into the environment, where /proc does not show them."""
    with os.fdopen(int(os.environ.pop(HANDED_OVER)), "rb") as file:
        file.seek(0)
        os.environ.update(json.load(file))


def _restart() -> None:
    """Replace this process by a new start of the same program, unless it has no secrets to hide."""
    from horae.worker.environ import split_environment

    argv, from_flags = without_secrets(sys.orig_argv)
    opened, hidden = split_environment(os.environ | from_flags)
    if not hidden:
        return
    file = os.memfd_create("horae", 0)  # stays open across the exec
    os.write(file, json.dumps(hidden).encode())
    os.execve(sys.executable, argv, opened | {HANDED_OVER: str(file)})


def without_secrets(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command line without the flags that hold secrets, and those secrets as variables."""
    kept: list[str] = []
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in SECRET_FLAGS:
            kept.append(word)
            continue
        given = value if equals else next(words, None)
        if given is None:  # the command reports the missing value
            kept.append(word)
        else:
            found[SECRET_FLAGS[flag]] = given
    return kept, found
