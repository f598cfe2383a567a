"""Measurements of Horae on this machine, on real processes over HTTP: `python -m bench NAME` beside this folder.

Each module of `measures` is a bench, named in BENCHES, with its bounds in `kit.targets`; a new one needs no more.
`kit` starts servers and workers, brings stores, makes load and prints results; `runs` has the parts of larger benches.
`pages` runs benches and writes docs/PERFORMANCE.md, docs/SCALE.md and docs/RESULTS-policies.md from what they print.
The package does not import this project and ships without it; users have `horae bench`.
"""

BENCHES = {
    "throughput": "Executions a second: submitted in bulk or each alone, run by a worker, results stored.",
    "submit": "Submissions a second over HTTP, in bulk and one by one.",
    "latency": "How soon what is submitted begins to run, at rest and under half load.",
    "reads": "Reads a second and how long they take while much is run.",
    "api": "How long the overview, lists and statistics take with many jobs and a long history.",
    "sessions": "What many worker sessions cost a server, and where they go when it is killed.",
    "concurrency": "A worker that holds many async executions, or workers that hold many commands.",
    "sustain": "A load that goes on: whether rate, latency and memory stay what they were.",
    "growth": "Throughput with a long history or a long queue, against throughput on an empty store.",
    "policies": "What policies do to those who wait, and what they cost against plain fifo.",
    "claims": "Whether claims stay as fast with many lanes in use, and with millions queued.",
    "timers": "How late triggers fire beside millions of others, and when very many fire at once.",
    "workflows": "How soon steps of workflows follow one another, and how many a second.",
    "logs": "Log lines a second beside half load, and whether any is lost.",
    "events": "What listeners of the stream cost a server.",
    "disk": "Bytes on disk per finished execution, indexes included.",
    "start": "Cold start of `horae up` to the first execution finished.",
    "idle": "Processor time and memory of an idle `horae up`.",
    "stages": "Where a microsecond goes: the stages of an execution's life, timed one by one.",
}
