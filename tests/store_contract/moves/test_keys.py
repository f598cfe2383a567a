"""Keys are written, replaced and ended once; a session from a sign-in link ends with its key."""

from msgspec.structs import replace

from horae.env import SECOND
from horae.model.tenancy.keys import KeyRights, StoredKey
from horae.store.tenancy import keys

GRANT = KeyRights(namespace=1, role="operator", permissions=("sensitive",), queues=("etl",), jobs=("etl-*", "x"))


def key(world, id: str, **more) -> StoredKey:
    return StoredKey(id=id, hash=id.encode() * 8, name=f"key {id}", grant=GRANT, created_at=world.now(), **more)


async def test_a_key_is_read_as_it_was_written_with_the_name_of_its_namespace(world):
    made = key(world, "aaaa", expires_at=world.now() + SECOND)
    await world.store.write(lambda: keys.add(made))
    found = await world.store.read(lambda: keys.by_id("aaaa"))
    assert found == replace(made, grant=replace(GRANT, namespace_name="default"))
    assert await world.store.read(lambda: keys.page(1, "", 10)) == [found]
    assert await world.store.read(lambda: keys.page(2, "", 10)) == []


async def test_a_key_is_succeeded_once_and_ends_with_the_overlap_or_sooner(world):
    now, write = world.now(), world.store.write
    await write(lambda: keys.add(key(world, "aaaa")))
    await write(lambda: keys.add(key(world, "bbbb", expires_at=now + SECOND)))

    assert await write(lambda: keys.rotate("aaaa", key(world, "cccc"), now + 5 * SECOND, now))
    assert await write(lambda: keys.rotate("bbbb", key(world, "dddd"), now + 5 * SECOND, now))
    assert not await write(lambda: keys.rotate("aaaa", key(world, "eeee"), now + 5 * SECOND, now))
    assert not await write(lambda: keys.rotate("bbbb", key(world, "ffff"), now + 9 * SECOND, now + SECOND))

    found = {one.id: one for one in await world.store.read(lambda: keys.page(1, "", 10))}
    assert sorted(found) == ["aaaa", "bbbb", "cccc", "dddd"]
    assert (found["aaaa"].replaced_by, found["aaaa"].expires_at) == ("cccc", now + 5 * SECOND)
    assert (found["bbbb"].replaced_by, found["bbbb"].expires_at) == ("dddd", now + SECOND)


async def test_a_replaced_preset_key_is_valid_again(world):
    now, write = world.now(), world.store.write
    await write(lambda: keys.add(key(world, "aaaa")))
    await write(lambda: keys.rotate("aaaa", key(world, "bbbb"), now, now))
    await write(lambda: keys.add(key(world, "aaaa")))
    found = await world.store.read(lambda: keys.by_id("aaaa"))
    assert (found.expires_at, found.replaced_by, found.revoked_at) == (None, None, None)


async def test_a_key_from_a_sign_in_link_has_the_rights_of_its_creator_and_ends_with_it(world):
    now, write, read = world.now(), world.store.write, world.store.read
    await write(lambda: keys.add(key(world, "aaaa", expires_at=now + 9 * SECOND)))
    made = replace(GRANT, made_by="aaaa")
    for code in (b"one", b"two"):
        await write(lambda: keys.add_code(code, made, now + 60 * SECOND, now))  # noqa: B023

    signed = await write(lambda: keys.sign_in(b"one", "bbbb", b"cookie", "csrf", now + 99 * SECOND, now))
    assert (signed.grant, signed.expires_at) == (replace(made, namespace_name="default"), now + 9 * SECOND)

    assert await write(lambda: keys.revoke(1, "aaaa", now))
    browser, _ = await read(lambda: keys.key_of_cookie(b"cookie", now))
    assert not browser.valid(now)
    assert await write(lambda: keys.sign_in(b"two", "cccc", b"other", "csrf", now + 99 * SECOND, now)) is None


async def test_only_an_administrator_key_of_the_installation_replaces_the_first_key(world):
    write = world.store.write
    tenant = replace(key(world, "aaaa"), grant=KeyRights(namespace=2, role="admin"))
    root = replace(key(world, "bbbb"), grant=KeyRights(namespace=1, role="admin", permissions=("installation",)))
    await write(lambda: keys.add(tenant))
    assert not await world.store.read(keys.has_admin)
    assert await write(lambda: keys.add_first_admin(root))
    assert await world.store.read(keys.has_admin)
    assert not await write(lambda: keys.add_first_admin(replace(root, id="cccc")))
