"""Operations on users and their memberships in namespaces."""

from horae.env import Env
from horae.errors import BadInput, Conflict, Forbidden, NotFound
from horae.features.users.engine.passwords import Passwords
from horae.features.users.engine.sign_ins import SignIns
from horae.features.users.model import Member, User, check_name, check_password
from horae.features.users.store import users as user_rows
from horae.model.tenancy.principal import DEFAULT_NAMESPACE, NESTED, PERMISSIONS, Principal, refuse_more
from horae.store.contract import Store

NOT_HERE = "`horae users list` shows all users."


class Users:
    """The operations on users.

    Administrators of the installation see all users, administrators of a namespace only those of their namespace.
    """

    def __init__(self, env: Env, store: Store, passwords: Passwords, sign_ins: SignIns) -> None:
        self._env, self._store, self._passwords, self._sign_ins = env, store, passwords, sign_ins

    async def list(self, who: Principal, after: str = "", limit: int = 100) -> list[User]:
        """Return a page of the users that the caller may see, in the order of their names."""
        namespace = None if who.may("installation") else who.namespace
        return await self._store.read(lambda: user_rows.page(namespace, after, limit))

    async def get(self, who: Principal, name: str) -> User:
        """Return a user, with the memberships that the caller may see. Raises NotFound."""
        found = await self._store.read(lambda: user_rows.find(name))
        if found is None:
            raise _unknown(name)
        user = found[0]
        if who.may("installation"):
            return user
        mine = tuple(member for member in user.members if member.namespace == who.namespace)
        if not mine:
            raise _unknown(name)
        return User(
            name=user.name, is_active=user.is_active, has_password=user.has_password, created_at=user.created_at,
            signed_in_at=user.signed_in_at, members=mine,
        )  # fmt: skip

    async def create(self, name: str, password: str, member: Member, who: Principal) -> User:
        """Create a user with a password and a role. Raises BadInput, Conflict, Forbidden."""
        check_name(name)
        _check_own(name, who)
        kept = await self._passwords.hash(check_password(name, password))
        _check_grant(member, who)
        now = self._env.now()
        if not await self._store.write(lambda: user_rows.add(name, kept, member, now)):
            raise Conflict(
                f'There is a user "{name}" already, perhaps with other upper and lower case.',
                "Choose another name, or change that user.",
            )
        return await self.get(who, name)

    async def join(self, name: str, member: Member, who: Principal) -> User:
        """Grant a user a role in a namespace.

        Only an administrator of the installation can add a user of another namespace. Otherwise, any administrator
        could make their own namespace the one that the user's requests without a namespace go to.
        """
        _check_grant(member, who)
        await self._refuse_more(name, who)
        if not await self._store.write(lambda: user_rows.join(name, member)):
            raise _unknown(name)
        self._sign_ins.forget()
        return await self.get(who, name)

    async def leave(self, name: str, who: Principal) -> None:
        """Remove a user from the caller's namespace."""
        await self._refuse_more(name, who)
        if not await self._store.write(lambda: user_rows.leave(name, who.namespace)):
            raise _unknown(name)
        self._sign_ins.forget()

    async def _refuse_more(self, name: str, who: Principal) -> None:
        """Raise Forbidden if a user has permissions here that the caller does not have. Raises NotFound."""
        user = await self.get(who, name)
        for member in user.members:
            if member.namespace == who.namespace:
                refuse_more(who, member.permissions)

    async def set_password(self, name: str, password: str) -> None:
        """Set a user's password, and sign out the user's browsers."""
        kept = await self._passwords.hash(check_password(name, password))
        if not await self._store.write(lambda: user_rows.set_password(name, kept, keep=b"")):
            raise _unknown(name)
        self._sign_ins.forget()

    async def change_password(self, who: Principal, current: str, password: str, keep: bytes, address: str) -> None:
        """Change the caller's own password, and sign out other browsers than the one whose cookie has the hash `keep`.

        Raises Forbidden if the current password is wrong, and TooOften after too many wrong guesses.
        """
        if who.kind != "user":
            raise BadInput("Only users have passwords; this request has a key.", "Sign in as a user first.")
        user = await self._store.read(lambda: user_rows.find(who.name))
        if user is not None and user[1] is None:
            remedy = "Change your password at the identity provider where you sign in."
            raise BadInput(f'The user "{who.name}" has no password here.', remedy)
        wrong = Forbidden("The current password is wrong.", "Send your current password as `current`.")
        found = await self._sign_ins.authenticate(who.name, current, address)
        if found is None:
            raise wrong
        known, kept = found[1], await self._passwords.hash(check_password(who.name, password))
        if not await self._store.write(lambda: user_rows.set_password(who.name, kept, keep, known)):
            raise wrong
        self._sign_ins.forget()

    async def set_active(self, name: str, active: bool) -> None:
        """Activate or deactivate a user."""
        if not await self._store.write(lambda: user_rows.set_active(name, active)):
            raise _unknown(name)
        self._sign_ins.forget()

    async def delete(self, name: str) -> None:
        """Delete a user; the user's actions stay in the audit log."""
        if not await self._store.write(lambda: user_rows.delete(name)):
            raise _unknown(name)
        self._sign_ins.forget()


def _check_own(name: str, who: Principal) -> None:
    """Refuse a name that does not end with the namespace, if the caller is an administrator of one namespace only.

    Names are unique in the installation. Without this rule, the error for a taken name would reveal that a user with
    this name exists in another namespace.
    """
    own = f"@{who.namespace_name}"
    if not who.may("installation") and not name.endswith(own):
        remedy = f"Use NAME{own}; only callers with the permission `installation` may choose any name."
        raise BadInput(f"The name of a user of this namespace must end with {own}.", remedy, field="name")


def _check_grant(member: Member, who: Principal) -> None:
    """Refuse to grant permissions that the caller does not have."""
    if member.role not in NESTED:
        detail = f"{member.role[:60]!r} is not a role of users."
        raise BadInput(detail, f"Choose one of: {', '.join(NESTED)}. Workers have keys instead.", field="role")
    for permission in member.permissions:
        if permission not in PERMISSIONS:
            remedy = f"Choose from: {', '.join(PERMISSIONS)}."
            raise BadInput(f"{permission[:60]!r} is not a permission.", remedy, field="permissions")
        if not who.may(permission):
            raise Forbidden(f'You do not have the permission "{permission}".', "Ask a user who has it to grant it.")
    if "installation" in member.permissions and member.namespace != DEFAULT_NAMESPACE:
        remedy = "Grant it in the namespace default."
        raise BadInput('The permission "installation" is only for the namespace default.', remedy, field="permissions")


def _unknown(name: str) -> NotFound:
    return NotFound(f'There is no user "{name[:128]}".', NOT_HERE)
