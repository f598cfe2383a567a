"""Commands as another user, which only a worker that is root can run."""

import os
import pwd
from pathlib import Path

from msgspec import Struct


class CannotRunAs(Exception):
    """A command may not, or cannot, run as the requested user."""


class SystemUser(Struct, frozen=True):
    """The user that a command runs as, with only the user's main group."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}

    def own(self, *paths: Path) -> None:
        """Give files to the user. Their folder stays the worker's, so that the user cannot replace them."""
        for path in paths:
            if path.exists():
                os.chown(path, self.uid, self.gid)


def user_of(name: str, allowed: tuple[str, ...]) -> SystemUser:
    """Return the user with a name. Raises CannotRunAs if this worker cannot or must not run commands as this user.

    `allowed` are the users that commands may choose. If it is empty, they may choose any user except root.
    """
    if os.geteuid() != 0:
        remedy = "Start the worker as root, or remove the job's user"
        raise CannotRunAs(f"this worker is not root, so its commands cannot run as {name!r}. {remedy}")
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise CannotRunAs(f"there is no user {name!r} on this worker. Create it there") from None
    if name not in allowed and (allowed or found.pw_uid == 0):
        remedy = "Add the user to the worker's setting command_users"
        raise CannotRunAs(f"this worker must not run commands as {name!r}. {remedy}")
    return SystemUser(name, found.pw_uid, found.pw_gid, found.pw_dir, found.pw_shell)
