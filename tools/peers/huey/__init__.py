"""Huey with Redis as storage."""

from tools.peers.peer import Case, Peer

WORKER = ("huey_consumer", "app.huey", "--workers", "4", "--worker-type", "process", "--quiet", "--no-periodic")
SETTINGS = "4 worker processes, no periodic tasks, hiredis"

PEER = Peer(
    name="huey",
    title="Huey",
    package="huey",
    loses="a list in Redis without acknowledgements: a killed worker loses what it runs",
    cases=(
        Case(
            name="results", service="redis", results="result stored", worker=WORKER, singles=12_000, clients=1,
            settings=SETTINGS, environ={"RESULTS": "1"},
        ),
        Case(
            name="no results", service="redis", results="nothing kept", worker=WORKER, singles=16_000, clients=1,
            settings=SETTINGS,
        ),
        Case(
            name="results, synced", service="redis-always", results="result stored", worker=WORKER, singles=6_000,
            clients=16, settings=SETTINGS, environ={"RESULTS": "1"},
        ),
    ),
)  # fmt: skip
