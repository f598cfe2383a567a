"""RQ, which supports Redis only."""

from tools.peers.peer import Case, Peer

WORKER = ("rq", "worker-pool", "--url", "{url}/0", "--num-workers", "2", "--worker-class", "rq.worker.SimpleWorker",
          "--quiet", "default")  # fmt: skip
SETTINGS = "pool of 2 simple workers, which do not fork for each job, hiredis"

PEER = Peer(
    name="rq",
    title="RQ",
    package="rq",
    cases=(
        Case(
            name="results", service="redis", results="result stored", worker=WORKER, bulk=3_000, singles=1_000,
            clients=1, settings=SETTINGS, environ={"RESULTS": "1"},
        ),
        Case(
            name="no results", service="redis", results="nothing kept", worker=WORKER, bulk=3_000, singles=1_000,
            clients=1, settings=SETTINGS,
        ),
    ),
)  # fmt: skip
