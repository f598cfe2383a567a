"""Celery with Redis as broker and result backend."""

from tools.peers.peer import Case, Peer

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR")
PREFORK = ("celery", "-A", "app", "worker", "--pool=prefork", "--concurrency=2", *QUIET)
SOLO = ("celery", "-A", "app", "worker", "--pool=solo", *QUIET)
LEAN = "no rate limits, no events, no remote control, no gossip, no mingle, hiredis"

PEER = Peer(
    name="celery",
    title="Celery",
    package="celery",
    loses="a job is acknowledged when its worker takes it: a killed worker loses what it runs",
    cases=(
        Case(
            name="prefork, results", service="redis", results="result stored", worker=PREFORK, singles=4_000, clients=1,
            settings=f"pool of 2 processes, prefetch 64 each, {LEAN}", environ={"RESULTS": "1"},
        ),
        Case(
            name="prefork", service="redis", results="nothing kept", worker=PREFORK, singles=6_000, clients=1,
            settings=f"pool of 2 processes, prefetch 64 each, {LEAN}",
        ),
        Case(
            name="solo", service="redis", results="nothing kept", worker=SOLO, workers=2, singles=10_000, clients=1,
            settings=f"2 workers with the solo pool, prefetch 64 each, {LEAN}",
        ),
    ),
)  # fmt: skip
