"""The author of a request: the role, the permissions and the scope of a credential.

Roles are nested: of viewer, operator, editor and admin, each includes the roles before it. `worker` is separate, for
processes that execute jobs. Permissions are granted one by one, because each gives more power than a role: for example,
a user who may define a command can do all that the account of the workers can do. A scope restricts a credential to
some queues and jobs.
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
OF_ADMINS = frozenset({"commands", "sensitive"})  # the role admin implies these; it could grant them to itself anyway

DEFAULT_NAMESPACE = 1
DEFAULT_NAME = "default"


class RequestLimit(Struct, frozen=True, kw_only=True):
    """The rate of requests, and the id under which they are counted.

    The requests of a browser are counted under the key with which its user signed in.
    """

    of: str
    rate: Rate


class Principal(Struct, frozen=True, kw_only=True):
    """The author of a request, from its credential."""

    namespace: int
    namespace_name: str = DEFAULT_NAME
    role: str
    key: str  # the key's id, or "user:<name>"
    name: str
    kind: Kind = "key"
    permissions: frozenset[str] = frozenset()  # including the permissions of the role
    queues: tuple[str, ...] = ()  # the scope; empty: all queues
    jobs: tuple[str, ...] = ()  # the scope, as patterns; empty: all jobs
    allowance: RequestLimit | None = None
    csrf: str | None = None  # a token, set when the credential is a browser's cookie; writes must repeat it

    @property
    def scoped(self) -> bool:
        return bool(self.queues or self.jobs)

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions

    def covers(self, job: str, queue: str) -> bool:
        """Return whether a job of a queue is within the scope."""
        return (not self.queues or queue in self.queues) and self.covers_name(job)

    def covers_name(self, job: str) -> bool:
        """Return whether a job of this name is within the scope, in any of its queues."""
        return not self.jobs or any(fnmatchcase(job, pattern) for pattern in self.jobs)


# The user who starts the server, on the server's machine.
LOCAL = Principal(
    namespace=DEFAULT_NAMESPACE, role="admin", key="", name="local", kind="local", permissions=frozenset(PERMISSIONS)
)


def check_grant(
    by: Principal, namespace: int, role: str, permissions: Iterable[str], queues: Sequence[str], jobs: Sequence[str]
) -> None:
    """Refuse a credential that is contradictory, or more powerful than its creator's."""
    granted = frozenset(permissions)
    if role == "worker" and (granted or jobs):
        remedy, field = "Workers are bound to queues: remove this field.", "permissions" if granted else "jobs"
        raise BadInput("A worker's key has no permissions and no jobs.", remedy, field=field)
    if "installation" in granted and namespace != DEFAULT_NAMESPACE:
        remedy = "Create it in the namespace `default`; it can be used for any other namespace with --namespace."
        detail = "The permission installation is only for credentials of the namespace default."
        raise BadInput(detail, remedy, field="permissions")
    if "installation" in granted and (queues or jobs):
        remedy = "Remove the queues and jobs, or remove the permission."
        detail = "A credential with the permission installation cannot be restricted to queues or jobs."
        raise BadInput(detail, remedy, field="permissions")
    refuse_more(by, granted)


def refuse_more(by: Principal, granted: Iterable[str]) -> None:
    """Refuse to grant, revoke or copy permissions that the principal does not have."""
    beyond = sorted(frozenset(granted) - by.permissions)
    if beyond:
        raise Forbidden(
            f"This credential does not have the permission {' and '.join(beyond)} itself.",
            "Ask a user who has it: `horae keys list` shows the keys with this permission.",
        )


def effective_permissions(role: str, granted: Iterable[str]) -> frozenset[str]:
    """Return the permissions of a role together with the granted ones."""
    return frozenset(granted) | (OF_ADMINS if role == "admin" else frozenset())


def roles_including(role: Role) -> frozenset[str]:
    """Return the roles that include this one."""
    if role == "worker":
        return frozenset({"worker", "admin"})
    return frozenset(NESTED[NESTED.index(role) :])


def includes(role: str, named: str) -> bool:
    """Return whether a role includes the named one."""
    return role == named or (role in NESTED and named in NESTED and NESTED.index(role) >= NESTED.index(named))
