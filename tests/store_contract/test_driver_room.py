"""A full disk is noticed, also by a server that writes little."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.kit.postgres import Postgres
from horae.engine.server_node import ServerNode
from horae.env import Env, system_env
from horae.errors import StoreUnavailable
from horae.store.driver import Driver
from horae.store.open import open_store_driver
from tests.waiting import eventually


async def test_every_store_has_room(driver: Driver):
    await driver.check_room()


@contextmanager
def no_room() -> Iterator[None]:
    """Make the operating system refuse files of any size to this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_file_that_cannot_grow_is_reported(file_driver: Driver):
    with no_room(), pytest.raises(StoreUnavailable, match="There is no room to write"):
        await file_driver.check_room()
    await file_driver.check_room()


async def test_a_limit_of_temporary_files_is_not_a_full_disk(migrated_url: str, postgres: Postgres, env: Env):
    postgres.execute(f"ALTER DATABASE \"{migrated_url.rpartition('/')[2]}\" SET temp_file_limit = '10kB'")
    driver = await open_store_driver(migrated_url, env)
    await driver.check_room()
    await driver.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small disk for a test, if permitted."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting a small disk takes root's rights")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> Path:
    """Write until the disk is full."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
    return ballast


async def test_a_server_beside_a_full_postgresql_is_not_ready(small_disk: Path):
    server = Postgres(small_disk / "pg")
    os.chmod(small_disk, 0o777)
    for folder in small_disk.parents:
        if folder.stat().st_uid == os.getuid() and folder.name.startswith(("pytest-", "test_", "popen-")):
            folder.chmod(0o755)
    try:
        server.create({"max_wal_size": "64MB", "shared_buffers": "16MB"})
        server.start()
        node = await ServerNode.open(system_env(), server.create_database("horae"))
        await node.start()
        try:
            await eventually(lambda: node.ready)
            ballast = fill(small_disk)
            await eventually(lambda: not node.ready, within=20)
            ballast.unlink()
            await eventually(lambda: node.ready, within=20)
        finally:
            await node.stop()
    finally:
        server.remove()
