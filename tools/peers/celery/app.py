"""Celery's jobs. It has no bulk call; a group sends jobs one by one."""

import os

import redis
from celery import Celery
from clients import by_threads
from tally import tick

URL = os.environ["PEERS_URL"]
RESULTS = "RESULTS" in os.environ

app = Celery("peers", broker=f"{URL}/0", backend=f"{URL}/1" if RESULTS else None)
app.conf.update(
    task_ignore_result=not RESULTS,
    worker_prefetch_multiplier=64,
    worker_disable_rate_limits=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)
_queue, _results = redis.Redis.from_url(f"{URL}/0"), redis.Redis.from_url(f"{URL}/1")


@app.task
def noop(i):
    tick()
    return i


def singles(count, clients):
    if clients == 1:
        with app.producer_pool.acquire(block=True) as producer:
            for i in range(count):
                noop.apply_async(kwargs={"i": i}, producer=producer)
    else:
        by_threads(count, clients, lambda i: noop.apply_async(kwargs={"i": i}))


def left(count):
    if RESULTS:
        return count - _results.dbsize()
    return _queue.llen("celery") + _queue.hlen("unacked")
