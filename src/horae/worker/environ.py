"""Separates harmless environment variables from those that other processes must not read.

In /proc, every process of the same user can read the initial environment of a process, even after the process has
changed it. So the commands that a worker runs could read the worker's variables. Therefore a process is started with
harmless variables only, and gets all other variables later, over a socket or by a file in memory.
"""

from collections.abc import Mapping

# Variables of the worker's environment that commands receive.
PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
# Harmless variables: those that programs and Python read at their start, and those that shells set.
HARMLESS = {*PASSED, "TERM", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "VIRTUAL_ENV", "_"}
HARMLESS_PREFIXES = ("LC_", "LD_", "PYTHON", "MALLOC_", "GLIBC_")


def split_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the harmless variables, with which a process may start, and the variables to send to it later."""
    harmless = {
        name: value for name, value in environ.items() if name in HARMLESS or name.startswith(HARMLESS_PREFIXES)
    }
    return harmless, {name: value for name, value in environ.items() if name not in harmless}
