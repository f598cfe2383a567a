"""PgQueuer, which supports PostgreSQL only."""

from tools.peers.peer import Case, Peer


def case(batch: int) -> Case:
    worker = ("python", "-m", "app", str(batch))
    return Case(
        name=f"batches of {batch}", service="postgresql", results="a line in its log, it has no results", worker=worker,
        workers=2, bulk=80_000, singles=2_000, clients=64,
        settings=f"2 workers, {batch} jobs a fetch, asyncpg, uvloop, its tables logged",
    )  # fmt: skip


PEER = Peer(name="pgqueuer", title="PgQueuer", package="pgqueuer", cases=(case(100), case(500), case(1_000)))
