"""Which variables of a process's environment others may read.

Every process of the same user can read the environment that a process began with, in /proc, whatever it changes later:
the commands that a worker runs can read the worker's. So a process begins with open variables alone, and gets the
others in another way.
"""

from collections.abc import Mapping

# What commands see of their worker's environment.
PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
# What programs and Python read when they begin, and what shells set.
OPEN = {*PASSED, "TERM", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "VIRTUAL_ENV", "_"}
PREFIXES = ("LC_", "LD_", "PYTHON", "MALLOC_", "GLIBC_")


def divide(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that a process may begin with, and those that are handed to it later."""
    opened = {name: value for name, value in environ.items() if name in OPEN or name.startswith(PREFIXES)}
    return opened, {name: value for name, value in environ.items() if name not in opened}
