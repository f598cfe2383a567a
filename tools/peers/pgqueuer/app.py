"""PgQueuer's jobs. A payload is bytes; the job parses it as JSON, as other systems do for their jobs."""

import json
import os
import sys
from contextlib import asynccontextmanager

import asyncpg
import psycopg
import uvloop
from clients import by_tasks, chunks
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from tally import tick

URL = os.environ["PEERS_URL"]


async def work(batch):
    """Run a worker like `pgq run`; that command of this version fails with the typer that its requirements admit."""
    pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

    @pgq.entrypoint("noop")
    async def noop(job):
        json.loads(job.payload)
        tick()

    await pgq.run(batch_size=batch)


@asynccontextmanager
async def _queries(clients=1):
    async with asyncpg.create_pool(URL, min_size=clients, max_size=clients) as pool:
        yield Queries(AsyncpgPoolDriver(pool))


def _payload(i):
    return json.dumps({"i": i}).encode()


async def prepare():
    async with _queries() as queries:
        await queries.install()


async def bulk(count):
    async with _queries() as queries:
        for numbers in chunks(count):
            size = len(numbers)
            await queries.enqueue(["noop"] * size, [_payload(i) for i in numbers], [0] * size)


async def singles(count, clients):
    async with _queries(clients) as queries:
        await by_tasks(count, clients, lambda i: queries.enqueue("noop", _payload(i)))


_connection = None


def left(count):
    global _connection
    _connection = _connection or psycopg.connect(URL, autocommit=True)
    return _connection.execute("SELECT count(*) FROM pgqueuer").fetchone()[0]


if __name__ == "__main__":
    uvloop.run(work(int(sys.argv[1])))
