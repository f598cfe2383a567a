"""Users, and their roles and permissions in namespaces."""

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.tenancy.principal import DEFAULT_NAME, Principal, effective_permissions
from horae.model.tenancy.users import NAME

SHORTEST, LONGEST = 12, 256  # characters of a password
SHORTEST_NAMED = 4  # a password may contain the name of the user if it is shorter, because many words contain it


class Member(Struct, frozen=True, kw_only=True):
    """The role and permissions of a user in a namespace."""

    namespace: int
    namespace_name: str
    role: str
    permissions: tuple[str, ...] = ()


class User(Struct, frozen=True, kw_only=True):
    """A user; `members` are ordered by the names of the namespaces."""

    name: str
    is_active: bool = True
    has_password: bool = False
    created_at: Instant
    signed_in_at: Instant | None = None
    subject: str | None = None  # the id of the user at the identity provider
    members: tuple[Member, ...] = ()


def home_of(members: tuple[Member, ...]) -> Member | None:
    """Return the membership that applies to a request without a namespace: that in `default`, or else the first.

    Return None for a user without memberships.
    """
    return next((member for member in members if member.namespace_name == DEFAULT_NAME), next(iter(members), None))


def principal_of(name: str, member: Member, csrf: str) -> Principal:
    """Return the principal of a signed-in user in a namespace."""
    return Principal(
        namespace=member.namespace, namespace_name=member.namespace_name, role=member.role, key=f"user:{name}",
        name=name, kind="user", permissions=effective_permissions(member.role, member.permissions), csrf=csrf,
    )  # fmt: skip


def check_name(name: str) -> str:
    """Return the name if it is valid for a user. Raises BadInput."""
    if not NAME.fullmatch(name):
        remedy = "Use 1 to 128 letters, digits and . _ @ + -, such as ada or ada@example.com."
        raise BadInput(f"{name[:60]!r} is not a valid name of a user.", remedy, field="name")
    return name


def check_password(name: str, password: str) -> str:
    """Return the password if it is strong enough. Raises BadInput."""
    if not SHORTEST <= len(password) <= LONGEST:
        remedy = f"Use {SHORTEST} to {LONGEST} characters; a few words are easy to remember."
        raise BadInput(f"The password has {len(password)} characters.", remedy, field="password")
    names_user = len(name) >= SHORTEST_NAMED and name.lower() in password.lower()
    if len(set(password)) < 5 or names_user:
        remedy = "Do not use the user's name in it, and use at least five different characters."
        raise BadInput("The password is too easy to guess.", remedy, field="password")
    return password
