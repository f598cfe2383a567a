"""Environment variables of a process that other processes may read.

In /proc, every process of the same user can read the initial environment of a process, even after changes: the commands
that a worker runs can read the worker's. So a process starts with harmless variables only and receives the others in
another way.
"""

from collections.abc import Mapping

# Variables of the worker's environment that commands receive.
PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
# Variables that programs and Python read at their start, and variables that shells set.
OPEN = {*PASSED, "TERM", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "VIRTUAL_ENV", "_"}
PREFIXES = ("LC_", "LD_", "PYTHON", "MALLOC_", "GLIBC_")


def split_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that a process may start with, and the variables to send to it later."""
    opened = {name: value for name, value in environ.items() if name in OPEN or name.startswith(PREFIXES)}
    return opened, {name: value for name, value in environ.items() if name not in opened}
