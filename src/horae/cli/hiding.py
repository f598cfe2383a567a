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
from collections.abc import Mapping

# The flags with secrets of each long-running command, and the variables that replace them. Those of `autoscale` stay,
# because its variables are also those of the workers that it starts.
SECRET_FLAGS: dict[tuple[str, ...], dict[str, str]] = {
    ("up",): {"--store": "HORAE_STORE"},
    ("server",): {"--store": "HORAE_STORE"},
    ("worker",): {"--key": "HORAE_KEY", "--api-key": "HORAE_KEY", "--enrol": "HORAE_ENROL"},
    ("workers", "autoscale"): {},
}
HANDED_OVER = "HORAE_HANDED_OVER"  # the variable with the descriptor of the file in memory
PR_SET_DUMPABLE = 4


def hide() -> None:
    """Hide the environment and the memory of a long-running command. With HORAE_DEBUG, debuggers may still attach."""
    flags = next((known for words, known in SECRET_FLAGS.items() if sys.argv[1 : len(words) + 1] == [*words]), None)
    if sys.platform != "linux" or flags is None:
        return
    from horae.worker.processes.guard import prctl

    if HANDED_OVER in os.environ:
        load_handed_over()
    else:
        _restart(flags)
    if not os.environ.get("HORAE_DEBUG"):
        prctl(PR_SET_DUMPABLE, 0)


def load_handed_over() -> None:
    """Load the variables from the file in memory into the environment, where /proc does not show them."""
    with os.fdopen(int(os.environ.pop(HANDED_OVER)), "rb") as file:
        file.seek(0)
        os.environ.update(json.load(file))


def _restart(flags: Mapping[str, str]) -> None:
    """Replace this process by a new start of the same program, unless it has no secrets to hide."""
    from horae.worker.environ import split_environment

    argv, from_flags = without_secrets(sys.orig_argv, flags)
    opened, hidden = split_environment(os.environ | from_flags)
    if not hidden:
        return
    file = os.memfd_create("horae", 0)  # stays open across the exec
    os.write(file, json.dumps(hidden).encode())
    os.execve(sys.executable, argv, opened | {HANDED_OVER: str(file)})


def without_secrets(argv: list[str], flags: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return a command line without the flags that hold secrets, and those secrets as variables.

    `flags` has the variable for each flag.
    """
    kept: list[str] = []
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in flags:
            kept.append(word)
            continue
        given = value if equals else next(words, None)
        if given is None:  # the command reports the missing value
            kept.append(word)
        else:
            found[flags[flag]] = given
    return kept, found
