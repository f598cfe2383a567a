"""Access rules: the credentials that may use a route. Every route declares one of these rules."""

from msgspec import Struct

from horae.model.tenancy.principal import ROLES, Permission, Principal, roles_including


class Access(Struct, frozen=True):
    """The roles that may use a route, and the permission that the route requires in addition, if any."""

    roles: frozenset[str]
    permission: Permission | None = None

    @property
    def least(self) -> str:
        """The weakest role that suffices."""
        return next((role for role in ROLES_BY_RANK if role in self.roles), "admin")

    def admits(self, who: Principal) -> bool:
        return who.role in self.roles and (self.permission is None or self.permission in who.permissions)


ROLES_BY_RANK = ("viewer", "operator", "editor", "worker", "admin")
PUBLIC = Access(frozenset({"*"}))  # without a credential
ANY_CREDENTIAL = Access(frozenset(ROLES))  # any credential
VIEW = Access(roles_including("viewer"))  # reads
OPERATE = Access(roles_including("operator"))  # starts, pauses, holds and cancels
EDIT = Access(roles_including("editor"))  # writes definitions
ADMIN = Access(roles_including("admin"))  # manages access
WORKER = Access(roles_including("worker"))  # executes jobs
OVERSEE = Access(roles_including("viewer"), "installation")  # reads installation-wide data
INSTALLATION = Access(roles_including("admin"), "installation")  # changes installation-wide data
