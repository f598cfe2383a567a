"""Huey's jobs. It has no bulk call."""

import os

import tally
from clients import by_threads
from huey import RedisHuey

RESULTS = "RESULTS" in os.environ

huey = RedisHuey("peers", url=f"{os.environ['PEERS_URL']}/0", results=RESULTS)


@huey.task()
def noop(i):
    tally.tick()
    return i


def singles(count, clients):
    by_threads(count, clients, lambda i: noop(i=i))


def left(count):
    if RESULTS:
        return count - huey.storage.conn.hlen(huey.storage.result_key)
    return max(huey.storage.queue_size(), count - tally.count())
