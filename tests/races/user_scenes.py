"""Scenes of users: names differ in more than case, and changes of a user miss neither sign-ins nor roles."""

from typing import Any

from horae.env import SECOND
from horae.features.users.model import Member
from horae.features.users.store import users
from tests.races.scenes import scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World

VIEWER = Member(namespace=NAMESPACE, namespace_name="default", role="viewer")


async def ada(world: World) -> None:
    assert await world.store.write(lambda: users.add("ada", "old", None, world.now()))


def signing_in(world: World) -> Move:
    now = world.now()
    return Move("sign_in", lambda: users.sign_in(b"cookie", "ada", "old", "csrf", now + 60 * SECOND, now, None))


async def no_session(world: World, left: list[Any], right: list[Any]) -> None:
    assert await world.rows("SELECT 1 FROM sign_ins") == [], "a session outlasted a change of its user"


@scene("a user is added / a user is added whose name differs in case")
async def _(world: World) -> Scene:
    now = world.now()
    adding = [Move(name, lambda name=name: users.add(name, "hash", VIEWER, now)) for name in ("ada", "Ada")]

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted([*left, *right]) == [False, True], "two names of users differ only in case"

    return Scene(left=[adding[0]], right=[adding[1]], check=check)


@scene("a user signs in / the password is changed")
async def _(world: World) -> Scene:
    await ada(world)
    change = Move("set_password", lambda: users.set_password("ada", "new", b""))
    return Scene(left=[signing_in(world)], right=[change], check=no_session)


@scene("a user signs in / the user is deactivated")
async def _(world: World) -> Scene:
    await ada(world)
    change = Move("set_active", lambda: users.set_active("ada", False))
    return Scene(left=[signing_in(world)], right=[change], check=no_session)


@scene("a user gets a role / the user is deleted")
async def _(world: World) -> Scene:
    await ada(world)
    grant, delete = Move("join", lambda: users.join("ada", VIEWER)), Move("delete", lambda: users.delete("ada"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.rows("SELECT 1 FROM members") == [], "a deleted user has a role"

    return Scene(left=[grant], right=[delete], check=check)
