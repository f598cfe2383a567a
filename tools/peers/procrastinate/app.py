"""Procrastinate's jobs."""

import os

import psycopg
from clients import by_tasks, chunks
from procrastinate import App, PsycopgConnector
from tally import tick

URL = os.environ["PEERS_URL"]

app = App(connector=PsycopgConnector(conninfo=URL, min_size=4, max_size=20))


@app.task(name="noop")
async def noop(i):
    tick()
    return i


async def prepare():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def bulk(count):
    async with app.open_async():
        for numbers in chunks(count):
            await noop.batch_defer_async(*({"i": i} for i in numbers))


async def singles(count, clients):
    async with app.open_async():
        await by_tasks(count, clients, lambda i: noop.defer_async(i=i))


_connection = None


def left(count):
    global _connection
    _connection = _connection or psycopg.connect(URL, autocommit=True)
    row = _connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')").fetchone()
    return row[0]
