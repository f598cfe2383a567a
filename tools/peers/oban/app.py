"""Oban's jobs."""

import os

import psycopg
from clients import by_tasks, chunks
from oban import Oban, Record, schema, worker
from tally import tick

URL = os.environ["PEERS_URL"]
RESULTS = "RESULTS" in os.environ


@worker(queue="default")
class Noop:
    async def process(self, job):
        tick()
        return Record(job.args["i"]) if RESULTS else None


async def prepare():
    pool = await Oban.create_pool(URL)
    await schema.install(pool)
    await pool.close()


async def bulk(count):
    pool = await Oban.create_pool(URL)
    oban = Oban(pool=pool)
    for numbers in chunks(count):
        await oban.enqueue_many(Noop.new({"i": i}) for i in numbers)
    await pool.close()


async def singles(count, clients):
    pool = await Oban.create_pool(URL, min_size=clients, max_size=clients)
    oban = Oban(pool=pool)
    await by_tasks(count, clients, lambda i: oban.enqueue(Noop.new({"i": i})))
    await pool.close()


_connection = None


def left(count):
    global _connection
    _connection = _connection or psycopg.connect(URL, autocommit=True)
    return _connection.execute("SELECT count(*) FROM oban_jobs WHERE state <> 'completed'").fetchone()[0]
