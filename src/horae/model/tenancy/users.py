"""User names, and the roles of an identity provider's groups, in requests and settings."""

import re

from msgspec import Struct

from horae.errors import BadInput
from horae.model.tenancy.principal import NESTED, PERMISSIONS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")


class RoleMapping(Struct, frozen=True):
    """The role that a group of the identity provider grants."""

    namespace: str
    role: str
    permissions: tuple[str, ...] = ()


def read_mapping(group: str, text: str) -> RoleMapping:
    """Read `namespace:role` or `namespace:role+permission+...` from a setting."""
    namespace, _, granted = text.partition(":")
    role, *permissions = granted.split("+")
    if not namespace or role not in NESTED or not set(permissions) <= set(PERMISSIONS):
        remedy = (
            f'Write "namespace:role", with a role of {", ".join(NESTED)}; "+commands" after it grants a permission.'
        )
        raise BadInput(f"oidc_roles: {group}={text} is not a valid mapping.", remedy, field="oidc_roles")
    return RoleMapping(namespace, role, tuple(permissions))
