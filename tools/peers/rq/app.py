"""RQ's jobs."""

import os

import redis
from clients import by_threads, chunks
from rq import Queue
from tally import tick

URL = os.environ["PEERS_URL"]
RESULTS = "RESULTS" in os.environ
KEPT = 500 if RESULTS else 0  # seconds; RQ's own default, or 0

_client = redis.Redis.from_url(f"{URL}/0")
_queue = Queue(connection=_client)


def noop(i):
    tick()
    return i


def bulk(count):
    for numbers in chunks(count):
        _queue.enqueue_many([Queue.prepare_data(noop, kwargs={"i": i}, result_ttl=KEPT) for i in numbers])


def singles(count, clients):
    by_threads(count, clients, lambda i: _queue.enqueue_call(noop, kwargs={"i": i}, result_ttl=KEPT))


def left(count):
    if RESULTS:
        return count - _client.zcard("rq:finished:default")
    return _client.llen("rq:queue:default") + _client.zcard("rq:wip:default")
