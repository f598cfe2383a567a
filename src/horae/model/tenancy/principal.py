"""Who asks: the role, the permissions and the scope that a credential has.

Roles say what one may do: each of viewer, operator, editor and admin may do what those before it may; `worker` stands
beside them and is for processes that execute. Permissions are granted one by one, because each is worth more than its
role: who may define a command owns the workers' account. A scope narrows a credential to some queues and jobs.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, get_args

from msgspec import Struct

from horae.errors import BadInput, Forbidden
from horae.model.admission.rate import Rate

Role = Literal["viewer", "operator", "editor", "admin", "worker"]
Permission = Literal["commands", "sensitive", "installation"]
Kind = Literal["key", "user", "local"]
ROLES: tuple[Role, ...] = get_args(Role)
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
NESTED: tuple[Role, ...] = ("viewer", "operator", "editor", "admin")
OF_ADMINS = frozenset({"commands", "sensitive"})  # an administrator could grant them to itself anyway

DEFAULT_NAMESPACE = 1
DEFAULT_NAME = "default"


class RequestLimit(Struct, frozen=True, kw_only=True):
    """How often somebody may ask, and by what that is counted: browsers count with the key that signed them in."""

    of: str
    rate: Rate


class Principal(Struct, frozen=True, kw_only=True):
    """Who a request comes from, as its credential says."""

    namespace: int
    namespace_name: str = DEFAULT_NAME
    role: str
    key: str  # the key's id, or "user:<name>"
    name: str
    kind: Kind = "key"
    permissions: frozenset[str] = frozenset()  # in effect: those that the role brings included
    queues: tuple[str, ...] = ()  # the only ones it is for; empty: all
    jobs: tuple[str, ...] = ()  # patterns of the only jobs it is for; empty: all
    allowance: RequestLimit | None = None
    csrf: str | None = None  # set when a browser's cookie was the credential: writes must show it

    @property
    def scoped(self) -> bool:
        return bool(self.queues or self.jobs)

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions

    def covers(self, job: str, queue: str) -> bool:
        """Whether a job of a queue is within the scope."""
        return (not self.queues or queue in self.queues) and self.covers_name(job)

    def covers_name(self, job: str) -> bool:
        """Whether a job of this name is within the scope, in one of its queues."""
        return not self.jobs or any(fnmatchcase(job, pattern) for pattern in self.jobs)


# Who starts the server, on the machine that it runs on.
LOCAL = Principal(
    namespace=DEFAULT_NAMESPACE, role="admin", key="", name="local", kind="local", permissions=frozenset(PERMISSIONS)
)


def check_grant(
    by: Principal, namespace: int, role: str, permissions: Iterable[str], queues: Sequence[str], jobs: Sequence[str]
) -> None:
    """Refuse to make a credential that makes no sense, or is worth more than its maker has."""
    granted = frozenset(permissions)
    if role == "worker" and (granted or jobs):
        remedy, field = "Workers are bound to queues: leave this out.", "permissions" if granted else "jobs"
        raise BadInput("A worker's key has no permissions and no jobs.", remedy, field=field)
    if "installation" in granted and namespace != DEFAULT_NAMESPACE:
        remedy = "Make it in the namespace `default`: it may choose any other, with --namespace."
        raise BadInput("Keys of a namespace are not for the installation.", remedy, field="permissions")
    if "installation" in granted and (queues or jobs):
        remedy = "Leave the queues and jobs out, or the permission."
        raise BadInput("What is for the whole installation has no scope.", remedy, field="permissions")
    refuse_more(by, granted)


def refuse_more(by: Principal, granted: Iterable[str]) -> None:
    """Nobody gives, takes or copies what it does not have."""
    beyond = sorted(frozenset(granted) - by.permissions)
    if beyond:
        raise Forbidden(
            f"This credential does not have the permission {' and '.join(beyond)} itself.",
            "Ask somebody who has it: `horae keys list` shows whose keys do.",
        )


def in_effect(role: str, granted: Iterable[str]) -> frozenset[str]:
    """The permissions of a role with what was granted beyond it."""
    return frozenset(granted) | (OF_ADMINS if role == "admin" else frozenset())


def at_least(role: Role) -> frozenset[str]:
    """The roles that may do what this one may."""
    if role == "worker":
        return frozenset({"worker", "admin"})
    return frozenset(NESTED[NESTED.index(role) :])


def includes(role: str, named: str) -> bool:
    """Whether somebody of a role may do what is for another, or the same one."""
    return role == named or (role in NESTED and named in NESTED and NESTED.index(role) >= NESTED.index(named))
