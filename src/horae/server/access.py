"""The credentials that a route is for. Every route declares one of these."""

from msgspec import Struct

from horae.model.tenancy.principal import ROLES, Permission, Principal, at_least


class Access(Struct, frozen=True):
    """The roles that may use a route, and the permission that they need besides."""

    roles: frozenset[str]
    permission: Permission | None = None

    @property
    def least(self) -> str:
        """The weakest role that suffices."""
        return next((role for role in BY_MIGHT if role in self.roles), "admin")

    def admits(self, who: Principal) -> bool:
        return who.role in self.roles and (self.permission is None or self.permission in who.permissions)


BY_MIGHT = ("viewer", "operator", "editor", "worker", "admin")
EVERYBODY = Access(frozenset({"*"}))  # needs no credential
ANYBODY = Access(frozenset(ROLES))  # any credential
VIEW = Access(at_least("viewer"))  # reads
OPERATE = Access(at_least("operator"))  # acts on what is defined: runs it, holds it, ends it
EDIT = Access(at_least("editor"))  # defines
ADMIN = Access(at_least("admin"))  # grants and revokes
WORKER = Access(at_least("worker"))  # executes
OVERSEE = Access(at_least("viewer"), "installation")  # reads what belongs to no namespace, or to all
INSTALLATION = Access(at_least("admin"), "installation")  # changes what belongs to no namespace, or to all
