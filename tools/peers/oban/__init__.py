"""Oban for Python, which supports PostgreSQL only."""

from tools.peers.peer import Case, Peer


def case(name: str, results: str, **environ: str) -> Case:
    worker = (
        "oban",
        "start",
        "--dsn",
        "{url}",
        "--queues",
        "default:1000",
        "--cron-modules",
        "app",
        "--log-level",
        "ERROR",
    )
    return Case(
        name=name, service="postgresql", results=results, worker=worker, workers=2, bulk=20_000, singles=2_000,
        clients=32, settings="2 workers of 1,000 concurrent jobs, uvloop", environ=environ,
    )  # fmt: skip


PEER = Peer(
    name="oban",
    title="Oban for Python",
    package="oban",
    python=(3, 12),
    cases=(case("results", "job kept with its result", RESULTS="1"), case("no results", "job kept")),
)
