"""Program starts of the guard: search path, files, limits, and the scheduling policy of the worker.

The guard imports this without Horae's packages: only the standard library may be used here.
"""

import contextlib
import errno
import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from horae.worker.processes import confined
else:
    import confined

STEPS = ("limit", "user", "chdir", "exec")
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)  # ignored by the guard, not by its children


class Urgency:
    """Real-time scheduling, where the system allows it, so that the guard can act during a fork bomb.

    Programs that it starts get the worker's scheduling policy.
    """

    def __init__(self) -> None:
        self._policies: tuple[int, int] | None = None
        with contextlib.suppress(AttributeError, OSError):
            ordinary = os.sched_getscheduler(0)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            self._policies = ordinary, os.SCHED_FIFO

    @contextlib.contextmanager
    def put_off(self) -> Iterator[None]:
        """Use the ordinary policy during the block, so that a child that is started in it inherits this policy."""
        if self._policies is None:
            yield
            return
        ordinary, urgent = self._policies
        os.sched_setscheduler(0, ordinary, os.sched_param(0))
        try:
            yield
        finally:
            os.sched_setscheduler(0, urgent, os.sched_param(1))


def start(frame: dict[str, Any], fds: list[int], urgency: Urgency, nofile: int) -> int:
    """Start the program of a frame and return its pid. Raises an OSError with the failed step as its text."""
    argv, env, cwd = frame["argv"], frame["env"], frame["cwd"]
    here = os.open(".", os.O_RDONLY)
    moved = [duplicate_high(fd) for fd in fds]
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    files += [(os.POSIX_SPAWN_DUP2, fd, i) for i, fd in enumerate(moved, 1)]  # type: ignore[misc]
    step = "chdir"
    try:
        if frame.get("rlimits") or frame.get("user"):
            step = "exec"
            program = find_program(argv[0], env)
            with urgency.put_off():
                return confined.start(program, frame, moved, nofile)
        if cwd:
            os.chdir(cwd)
        step = "exec"
        program = find_program(argv[0], env)
        with open_files(nofile), urgency.put_off():
            return os.posix_spawn(program, argv, env, file_actions=files, setsid=True, setsigdef=IGNORED)
    except ValueError:
        raise OSError(errno.EINVAL, step) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror if error.strerror in STEPS else step) from None
    finally:
        os.fchdir(here)
        for fd in (here, *moved):
            os.close(fd)


def find_program(name: str, env: dict[str, str]) -> str:
    """Return the path of a program, by the PATH of its own environment."""
    if "/" in name:
        return name
    found = errno.ENOENT
    for folder in os.get_exec_path(env):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            found = errno.EACCES
    raise OSError(found, "exec")


@contextlib.contextmanager
def open_files(limit: int) -> Iterator[None]:
    """Change the limit on open files during the block, so that a child that is started in it inherits this limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def duplicate_high(fd: int) -> int:
    """Duplicate a descriptor to a number that no child uses."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)
