"""taskiq's jobs. It has no bulk call."""

import os

import redis
import tally
from clients import by_tasks
from taskiq.serializers import ORJSONSerializer
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend

URL = os.environ["PEERS_URL"]
RESULTS = "RESULTS" in os.environ

broker = ListQueueBroker(f"{URL}/0").with_serializer(ORJSONSerializer())
if RESULTS:
    broker = broker.with_result_backend(RedisAsyncResultBackend(f"{URL}/1", serializer=ORJSONSerializer()))
_queue, _results = redis.Redis.from_url(f"{URL}/0"), redis.Redis.from_url(f"{URL}/1")


@broker.task("noop")
async def noop(i):
    tally.tick()
    return i


async def singles(count, clients):
    await broker.startup()
    await by_tasks(count, clients, lambda i: noop.kiq(i=i))
    await broker.shutdown()


def left(count):
    if RESULTS:
        return count - _results.dbsize()
    return max(_queue.llen("taskiq"), count - tally.count())
