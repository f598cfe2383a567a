"""Folders and files with secrets are private to their owner, even under a lax umask."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from horae.cli.first_key import make_folder
from horae.engine.storage.file_storage import Folder
from horae.env import system_env
from horae.store.copying.backup import backup, restore
from horae.store.open import open_store_driver


@pytest.fixture(params=[0o000, 0o022], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the mode of everything in a folder."""
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Yield a folder with the same mode under each umask."""
    tmp_path.chmod(0o755)
    return tmp_path


def test_the_data_folder_and_its_created_parents_are_private(place: Path):
    make_folder(place / "share" / "horae")

    assert modes(place) == {"share": "0o700", "share/horae": "0o700"}


def test_an_existing_data_folder_keeps_its_mode(place: Path):
    (place / "data").mkdir()
    (place / "data").chmod(0o750)
    make_folder(place / "data")

    assert modes(place) == {"data": "0o750"}


async def test_artifact_folders_are_private(place: Path):
    await Folder(place / "artifacts").write("1/abc/report", pieces())

    assert modes(place) == {
        "artifacts": "0o700", "artifacts/1": "0o700", "artifacts/1/abc": "0o700", "artifacts/1/abc/report": "0o600",
    }  # fmt: skip


async def pieces() -> AsyncIterator[bytes]:
    yield b"x"


async def test_stores_backups_and_restored_files_are_private(place: Path):
    await back_up(f"sqlite:///{place}/data/horae.db", place / "copy")
    await restore(place / "copy", f"sqlite:///{place}/new/horae.db", system_env())

    found = modes(place)
    assert {found.pop("data"), found.pop("new")} == {"0o700"}
    assert set(found.values()) == {"0o600"}


async def test_a_backup_of_postgresql_is_private(place: Path, postgres_url: str):
    await back_up(postgres_url, place / "copy")

    assert modes(place) == {"copy": "0o600"}


async def back_up(url: str, file: Path) -> None:
    driver = await open_store_driver(url, system_env())
    try:
        await driver.migrate()
        await backup(driver, file, system_env())
    finally:
        await driver.close()
