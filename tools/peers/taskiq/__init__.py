"""taskiq with Redis as broker and result backend."""

from tools.peers.peer import Case, Peer

WORKER = ("taskiq", "worker", "app:broker", "--workers", "2", "--max-async-tasks", "100", "--max-prefetch", "100",
          "--no-parse", "--log-level", "ERROR")  # fmt: skip
SETTINGS = "2 processes, 100 async jobs and 100 prefetched each, parameters not parsed, uvloop, hiredis"

PEER = Peer(
    name="taskiq",
    title="taskiq",
    package="taskiq",
    loses="a list in Redis without acknowledgements: a killed worker loses what it holds",
    cases=(
        Case(
            name="results", service="redis", results="result stored", worker=WORKER, singles=12_000, clients=64,
            settings=SETTINGS, environ={"RESULTS": "1"},
        ),
        Case(
            name="no results", service="redis", results="nothing kept", worker=WORKER, singles=16_000, clients=64,
            settings=SETTINGS,
        ),
    ),
)  # fmt: skip
