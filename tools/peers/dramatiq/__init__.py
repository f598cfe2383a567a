"""Dramatiq with Redis as broker and result backend."""

from tools.peers.peer import Case, Peer

WORKER = ("dramatiq", "app", "--processes", "2", "--threads", "16")

PEER = Peer(
    name="dramatiq",
    title="Dramatiq",
    package="dramatiq",
    cases=(
        Case(
            name="results", service="redis", results="result stored", worker=WORKER, singles=12_000, clients=4,
            settings="2 processes of 16 threads, hiredis", environ={"RESULTS": "1"},
        ),
        Case(
            name="no results", service="redis", results="nothing kept", worker=WORKER, singles=16_000, clients=4,
            settings="2 processes of 16 threads, hiredis",
        ),
    ),
)  # fmt: skip
