"""Dramatiq's jobs. It has no bulk call; a group sends jobs one by one."""

import os

import dramatiq
import redis
from clients import by_threads
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from tally import tick

URL = os.environ["PEERS_URL"]
RESULTS = "RESULTS" in os.environ

broker = RedisBroker(url=f"{URL}/0")
if RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=f"{URL}/1")))
dramatiq.set_broker(broker)
_queue, _results = redis.Redis.from_url(f"{URL}/0"), redis.Redis.from_url(f"{URL}/1")


@dramatiq.actor(**({"store_results": True} if RESULTS else {}))
def noop(i):
    tick()
    return i if RESULTS else None


def singles(count, clients):
    by_threads(count, clients, lambda i: noop.send(i=i))


def left(count):
    unacknowledged = _queue.hlen("dramatiq:default.msgs")
    return max(unacknowledged, count - _results.dbsize()) if RESULTS else unacknowledged
