"""The users part of a server: sign-in by password or at an identity provider."""

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.features.users.engine.oidc import Oidc
from horae.features.users.engine.passwords import Passwords
from horae.features.users.engine.sign_ins import SignIns
from horae.features.users.engine.users import Users
from horae.store.contract import Store


def sign_ins(env: Env, store: Store, settings: EngineSettings) -> SignIns:
    """Create the part that checks cookies of browsers, which the check of credentials calls."""
    return SignIns(env, store, Passwords(), settings.sign_in_idle, settings.sign_in_life)


class UsersPart(ServerPart):
    """The part that signs users in, and manages them and their roles."""

    def __init__(self, node: ServerNode) -> None:
        env, store, settings = node.env, node.store, node.settings
        found = node.tenancy.keys.users
        assert isinstance(found, SignIns)
        self.sign_ins = found
        self.users = Users(env, store, found.passwords, found)
        callbacks = node.workflows.callbacks
        self.oidc = Oidc(env, store, found, settings.oidc, lambda: callbacks.secret) if settings.oidc else None

    async def close(self) -> None:
        if self.oidc is not None:
            await self.oidc.close()
