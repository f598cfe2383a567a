"""Procrastinate, which supports PostgreSQL only."""

from tools.peers.peer import Case, Peer

WORKER = ("procrastinate", "--app", "app.app", "worker", "--concurrency", "10")

PEER = Peer(
    name="procrastinate",
    title="Procrastinate",
    package="procrastinate",
    cases=(
        Case(
            name="jobs kept", service="postgresql", results="job kept, it has no results", worker=WORKER, workers=2,
            bulk=4_000, singles=1_000, clients=20, settings="2 workers of 10 concurrent jobs",
        ),
        Case(
            name="jobs deleted", service="postgresql", results="nothing kept", workers=2,
            worker=(*WORKER, "--delete-jobs", "always"), bulk=4_000, singles=1_000, clients=20,
            settings="2 workers of 10 concurrent jobs",
        ),
    ),
)  # fmt: skip
