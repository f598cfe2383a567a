"""Keep what a long-running process knows from other processes of its user, above all from commands that it runs.

/proc shows the arguments and the environment that a process began with for as long as it lives. So a server or worker
that began with secrets starts its program anew, under the same process id, with open variables alone; the others are
in a file in memory, which it reads and closes. Then it asks the kernel that other processes of its user read neither
its memory nor its environment, and that no core dump holds it. Nothing keeps root out.
"""

import json
import os
import sys

LONG_RUNNING = ("up", "server", "worker")
SECRET_FLAGS = {"--key": "HORAE_KEY", "--enrol": "HORAE_ENROL"}
HANDED_OVER = "HORAE_HANDED_OVER"  # the descriptor of that file
PR_SET_DUMPABLE = 4


def hide() -> None:
    """Hide the environment and the memory of a command that stays; with HORAE_DEBUG debuggers still reach it."""
    if sys.platform != "linux" or not set(sys.argv[1:2]) & set(LONG_RUNNING):
        return
    from horae.worker.processes.guard import prctl

    if HANDED_OVER in os.environ:
        take_over()
    else:
        _start_anew()
    if not os.environ.get("HORAE_DEBUG"):
        prctl(PR_SET_DUMPABLE, 0)


def take_over() -> None:
    """Put the variables that were handed over into the environment, where /proc does not show them."""
    with os.fdopen(int(os.environ.pop(HANDED_OVER)), "rb") as file:
        file.seek(0)
        os.environ.update(json.load(file))


def _start_anew() -> None:
    """Replace this program by itself, unless it began with nothing to hide."""
    from horae.worker.environ import divide

    argv, from_flags = without_secrets(sys.orig_argv)
    opened, hidden = divide(os.environ | from_flags)
    if not hidden:
        return
    file = os.memfd_create("horae", 0)  # stays open over the exec
    os.write(file, json.dumps(hidden).encode())
    os.execve(sys.executable, argv, opened | {HANDED_OVER: str(file)})


def without_secrets(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command line without the flags that hold a secret, and these as variables."""
    kept: list[str] = []
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in SECRET_FLAGS:
            kept.append(word)
            continue
        given = value if equals else next(words, None)
        if given is None:  # the command says what is missing
            kept.append(word)
        else:
            found[SECRET_FLAGS[flag]] = given
    return kept, found
