"""PgQueuer, which is PostgreSQL only."""

from tools.peers.peer import Case, Peer


def case(batch: int, workers: int = 1) -> Case:
    worker = ("python", "-m", "app", str(batch))
    return Case(
        name=f"batches of {batch}", service="postgresql", results="a line in its log, it has no results", worker=worker,
        workers=workers, bulk=80_000, singles=2_000, clients=16,
        settings=f"asyncpg, uvloop, {workers} worker{'s' * (workers > 1)}, {batch} jobs a fetch, its tables logged",
    )  # fmt: skip


PEER = Peer(name="pgqueuer", title="PgQueuer", package="pgqueuer", cases=(case(100), case(500), case(1_000)))
