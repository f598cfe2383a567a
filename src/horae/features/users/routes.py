"""Routes of users and their roles in namespaces."""

from typing import Annotated, Any

from msgspec import Meta

from horae.errors import BadInput, Conflict, Forbidden, NotFound
from horae.features.users.model import Member, User
from horae.features.users.part import UsersPart
from horae.model.base.instant import format_instant
from horae.model.base.view import Page, Time, View, shown_time
from horae.server.access import ADMIN, INSTALLATION
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Paged
from horae.server.reply import Response, nothing, ok
from horae.server.route import ACTION, API, delete, get, patch, post, put
from horae.server.scopes import closed

UserName = Annotated[str, Meta(min_length=1, max_length=128)]
UserPassword = Annotated[str, Meta(min_length=1, max_length=1024)]


class MembershipView(View, frozen=True, kw_only=True):
    """The role and permissions of a user in a namespace."""

    namespace: str
    role: str
    permissions: tuple[str, ...] = ()


class UserView(View, frozen=True, kw_only=True):
    """A user."""

    name: str
    active: bool
    has_password: Annotated[
        bool, Meta(description="Whether the user has a password. Users without one sign in at an identity provider.")
    ]
    created_at: Time
    signed_in_at: Time | None = None
    memberships: list[MembershipView]

    @classmethod
    def of(cls, user: User) -> "UserView":
        memberships = [
            MembershipView(namespace=member.namespace_name, role=member.role, permissions=member.permissions)
            for member in user.members
        ]
        return cls(
            name=user.name, active=user.is_active, has_password=user.has_password, memberships=memberships,
            created_at=format_instant(user.created_at), signed_in_at=shown_time(user.signed_in_at),
        )  # fmt: skip


class MemberBody(RequestBody, frozen=True, kw_only=True):
    """A role and permissions in this namespace."""

    role: Annotated[str, Meta(description="viewer, operator, editor or admin.")]
    permissions: Annotated[
        tuple[str, ...], Meta(max_length=10, description="Permissions in addition to those of the role.")
    ] = ()


class UserBody(MemberBody, frozen=True, kw_only=True):
    """A new user, with a role in this namespace."""

    name: UserName
    password: UserPassword


class UserEdit(RequestBody, frozen=True, kw_only=True):
    """A change of a user."""

    password: UserPassword | None = None
    active: bool | None = None


@get(f"{API}/users", "users.list", Page[UserView], access=ADMIN, scope=closed, secret=True)
async def list_users(call: ApiCall, query: Paged) -> Response:
    """List users in the order of their names; administrators of a namespace see only the users of this namespace."""
    found = await call.node.part(UsersPart).users.list(call.who, query.cursor or "", query.limit + 1)
    items = [UserView.of(user) for user in found[: query.limit]]
    return ok(Page(items=items, next_cursor=items[-1].name if len(found) > query.limit else None))


@post(
    f"{API}/users", "users.create", UserView,
    access=ADMIN, scope=closed, audit=ACTION, status=201, refuses=(Conflict, Forbidden),
)  # fmt: skip
async def create(call: ApiCall, body: UserBody) -> Response:
    """Create a user with a password and a role in this namespace."""
    user = await call.node.part(UsersPart).users.create(body.name, body.password, _member(call, body), call.who)
    return ok(UserView.of(user), 201, location=f"{API}/users/{user.name}")


@get(f"{API}/users/{{name}}", "users.get", UserView, access=ADMIN, scope=closed, refuses=(NotFound,), secret=True)
async def read(call: ApiCall) -> Response:
    """Read a user."""
    return ok(UserView.of(await call.node.part(UsersPart).users.get(call.who, call.path("name"))))


@patch(
    f"{API}/users/{{name}}", "users.edit", UserView,
    access=INSTALLATION, scope=closed, audit=ACTION, refuses=(NotFound,),
)  # fmt: skip
async def edit(call: ApiCall, body: UserEdit) -> Response:
    """Set a user's password, or activate or deactivate the user.

    A new password and a deactivation end all sessions of the user.
    """
    name = call.path("name")
    if body.password is None and body.active is None:
        raise BadInput("The request changes nothing.", "Send `password`, `active` or both.")
    if body.password is not None:
        await call.node.part(UsersPart).users.set_password(name, body.password)
    if body.active is not None:
        await call.node.part(UsersPart).users.set_active(name, body.active)
    return ok(UserView.of(await call.node.part(UsersPart).users.get(call.who, name)))


@delete(f"{API}/users/{{name}}", "users.delete", access=INSTALLATION, scope=closed, audit=ACTION, refuses=(NotFound,))
async def remove(call: ApiCall) -> Response:
    """Delete a user; the user's actions stay in the audit log."""
    await call.node.part(UsersPart).users.delete(call.path("name"))
    return nothing()


@put(
    f"{API}/users/{{name}}/member", "users.grant", UserView,
    access=ADMIN, scope=closed, audit=ACTION, refuses=(NotFound, Forbidden),
)  # fmt: skip
async def grant(call: ApiCall, body: MemberBody) -> Response:
    """Grant a user a role in this namespace."""
    return ok(UserView.of(await call.node.part(UsersPart).users.join(call.path("name"), _member(call, body), call.who)))


@delete(f"{API}/users/{{name}}/member", "users.revoke", access=ADMIN, scope=closed, audit=ACTION, refuses=(NotFound,))
async def revoke(call: ApiCall) -> Response:
    """Remove a user from this namespace."""
    await call.node.part(UsersPart).users.leave(call.path("name"), call.who)
    return nothing()


def _member(call: ApiCall, body: Any) -> Member:
    return Member(
        namespace=call.namespace, namespace_name=call.who.namespace_name, role=body.role, permissions=body.permissions
    )
