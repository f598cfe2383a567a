"""People: who they are, and what they may do in which namespaces."""

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.tenancy.principal import DEFAULT_NAME, Principal, in_effect
from horae.model.tenancy.users import NAME

SHORTEST, LONGEST = 12, 256  # characters of a password


class Member(Struct, frozen=True, kw_only=True):
    """What somebody may do in a namespace."""

    namespace: int
    namespace_name: str
    role: str
    permissions: tuple[str, ...] = ()


class User(Struct, frozen=True, kw_only=True):
    """A person; `members` are in the order of the namespaces' names."""

    name: str
    is_active: bool = True
    has_password: bool = False
    created_at: Instant
    signed_in_at: Instant | None = None
    subject: str | None = None  # who the name belongs to at the identity provider
    members: tuple[Member, ...] = ()


def home_of(members: tuple[Member, ...]) -> Member | None:
    """The namespace somebody is in without choosing one."""
    return next((member for member in members if member.namespace_name == DEFAULT_NAME), next(iter(members), None))


def principal_of(name: str, member: Member, csrf: str) -> Principal:
    """Who a signed-in person is in a namespace."""
    return Principal(
        namespace=member.namespace, namespace_name=member.namespace_name, role=member.role, key=f"user:{name}",
        name=name, kind="user", permissions=in_effect(member.role, member.permissions), csrf=csrf,
    )  # fmt: skip


def check_name(name: str) -> str:
    """A name that a person may have."""
    if not NAME.fullmatch(name):
        remedy = "Use 1 to 128 letters, digits and . _ @ + -, such as ada or ada@example.com."
        raise BadInput(f"{name[:60]!r} is not a user's name.", remedy, field="name")
    return name


def check_password(name: str, password: str) -> str:
    """A password that is worth having."""
    if not SHORTEST <= len(password) <= LONGEST:
        remedy = f"Use {SHORTEST} to {LONGEST} characters: a few words are easy to keep in mind."
        raise BadInput(f"The password has {len(password)} characters.", remedy, field="password")
    if len(set(password)) < 5 or name.lower() in password.lower():
        remedy = "Leave out the name, and repeat less."
        raise BadInput("The password is too easy to guess.", remedy, field="password")
    return password
