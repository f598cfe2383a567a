"""Sealing: a value opens only with its key and in its context."""

import stat
from base64 import b64encode
from pathlib import Path

import pytest

from horae.config.build import engine_settings
from horae.config.load import load
from horae.engine.base.sealing import Sealer
from horae.env import virtual_env
from horae.errors import BadInput, MasterKeyMissing
from horae.store.base import sealing
from horae.store.contract import Store
from horae.store.open import open_store_driver

OLD, NEW = (b64encode(bytes([n]) * 32).decode() for n in (1, 2))


@pytest.fixture
async def store(store_url):
    env = virtual_env()
    driver = await open_store_driver(store_url, env)
    await driver.migrate()
    yield Store(driver, env)
    await driver.write(_forget)
    await driver.close()


def _forget():
    from horae.store.script import Fetch, Statement

    yield Fetch(Statement("forget_master_keys", "DELETE FROM store WHERE key LIKE 'master_key:%'"))


async def sealer(store: Store, keys: str = "", file: str = "", make: bool = False) -> Sealer:
    made = Sealer(store.env, store, keys, file, make=make)
    await made.prepare()
    return made


async def test_a_value_opens_with_its_key_in_its_place_only(store):
    ours = await sealer(store, OLD)
    sealed = ours.seal(b"hunter2", b"secrets/1/db")

    assert ours.open(sealed, b"secrets/1/db") == b"hunter2"
    assert ours.seal(b"hunter2", b"secrets/1/db") != sealed
    assert b"hunter2" not in sealed
    for wrong in (sealed[:-1], sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:], b"", b"\x01", b"\x02" + sealed[1:]):
        with pytest.raises(MasterKeyMissing, match="damaged"):
            ours.open(wrong, b"secrets/1/db")
    with pytest.raises(MasterKeyMissing, match="another place"):
        ours.open(sealed, b"secrets/2/db")


async def test_the_first_key_seals_and_all_open(store):
    sealed = (await sealer(store, OLD)).seal(b"x", b"c")
    both = await sealer(store, f"{NEW},{OLD}")

    assert (both.open(sealed, b"c"), both.is_current(sealed)) == (b"x", False)
    again = both.reseal(sealed, b"c")
    assert both.is_current(again)
    assert (await sealer(store, NEW)).open(again, b"c") == b"x"
    assert len(await store.read(sealing.known_keys)) == 2


@pytest.mark.parametrize("given", ["", NEW])
async def test_a_missing_or_wrong_key_is_reported_and_seals_nothing(store, given):
    sealed = (await sealer(store, OLD)).seal(b"x", b"c")
    known = await store.read(sealing.known_keys)

    wrong = await sealer(store, given)

    with pytest.raises(MasterKeyMissing, match=f"needs the master key {next(iter(known))}; this server was given"):
        wrong.seal(b"y", b"c")
    with pytest.raises(MasterKeyMissing, match="Give it that key, too"):
        wrong.open(sealed, b"c")
    assert await store.read(sealing.known_keys) == known


async def test_without_any_key_it_says_how_to_give_one(store):
    with pytest.raises(MasterKeyMissing, match="openssl rand -base64 32"):
        (await sealer(store)).seal(b"x", b"c")


async def test_the_first_start_makes_a_key_that_only_its_owner_reads_and_never_another(store, tmp_path):
    path = tmp_path / "secret.key"
    sealed = (await sealer(store, file=str(path), make=True)).seal(b"x", b"c")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.glob("secret.key*")] == ["secret.key"]
    assert (await sealer(store, file=str(path), make=True)).open(sealed, b"c") == b"x"
    path.unlink()
    with pytest.raises(MasterKeyMissing, match="this server was given none"):
        (await sealer(store, file=str(path), make=True)).seal(b"y", b"c")
    assert not path.exists()


async def test_a_file_that_is_not_a_key_stops_nothing_but_sealing(store, tmp_path):
    (tmp_path / "secret.key").write_text("not a key at all, sorry")

    broken = await sealer(store, file=str(tmp_path / "secret.key"), make=True)

    with pytest.raises(MasterKeyMissing, match="Master key 1 is not base64"):
        broken.seal(b"x", b"c")


@pytest.mark.parametrize("file", ["x" * 300 + "/secret.key", "."])
async def test_a_file_that_cannot_be_read_stops_nothing_but_sealing(store, tmp_path, file):
    broken = await sealer(store, file=str(tmp_path / file), make=True)

    with pytest.raises(MasterKeyMissing, match="cannot be read"):
        broken.seal(b"x", b"c")


def test_settings_name_the_key_and_refuse_an_invalid_one_without_showing_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = engine_settings(load(environ={"HORAE_DATA": "state"}).settings)
    shared = engine_settings(load(environ={"HORAE_STORE": "postgresql://db/horae"}).settings)
    given = engine_settings(load(environ={"HORAE_MASTER_KEY": f"{NEW}, {OLD}"}).settings)

    assert (Path(made.master_key_file), made.make_master_key) == (Path("state/secret.key"), True)
    assert shared.make_master_key is False
    assert given.master_keys == f"{NEW}, {OLD}"
    for wrong in ("c2hvcnQ=", "swordfish!"):
        with pytest.raises(BadInput, match="openssl") as refused:
            load(environ={"HORAE_MASTER_KEY": wrong})
        assert wrong not in str(refused.value)
