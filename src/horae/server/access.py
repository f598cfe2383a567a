"""Access rules: the credentials that may use a route. Every route declares one of them."""

from msgspec import Struct

from horae.model.tenancy.principal import ROLES, Permission, Principal, at_least


class Access(Struct, frozen=True):
    """The roles that may use a route, and the permission that it requires besides."""

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
VIEW = Access(at_least("viewer"))  # reads
OPERATE = Access(at_least("operator"))  # runs, holds and ends things
EDIT = Access(at_least("editor"))  # writes definitions
ADMIN = Access(at_least("admin"))  # grants and revokes
WORKER = Access(at_least("worker"))  # executes jobs
OVERSEE = Access(at_least("viewer"), "installation")  # reads installation-wide data
INSTALLATION = Access(at_least("admin"), "installation")  # changes installation-wide data
