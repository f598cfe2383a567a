"""Measurements of Horae on this machine, with real processes over HTTP: `python -m bench NAME` beside this folder.

Each module of `measures` is a bench, listed in BENCHES, with its bounds in `kit.targets`; a new one needs nothing else.
`kit` starts servers and workers, provides stores, generates load and prints results; `runs` has the parts of larger
benches. `pages` runs benches and writes docs/PERFORMANCE.md, docs/SCALE.md and docs/RESULTS-policies.md from their
output.

The package `horae` does not import this project and ships without it; users have `horae bench`.
"""

BENCHES = {
    "throughput": "Executions per second: submitted in bulk or one by one, run by a worker, results stored.",
    "submit": "Submissions per second over HTTP, in bulk and one by one.",
    "latency": "The time from a submission to its start, at rest and under half load.",
    "reads": "Reads per second and their durations while many executions run.",
    "api": "Durations of the overview, lists and statistics with many jobs and a long history.",
    "sessions": "The cost of many worker sessions for a server, and their reconnection when it is killed.",
    "concurrency": "Many async executions in one worker, or many commands in several workers.",
    "sustain": "A long load: changes of rate, latency and memory.",
    "growth": "Throughput with a long history or a long queue, compared with an empty store.",
    "policies": "Effects of policies on waiting executions, and their cost compared with plain fifo.",
    "claims": "The speed of claims with many lanes in use, and with millions of queued executions.",
    "timers": "The lag of triggers beside millions of others, and when very many fire at once.",
    "workflows": "The latency between steps of workflows, and steps per second.",
    "logs": "Log lines per second beside half load, and lost lines.",
    "events": "The cost of listeners of the stream for a server.",
    "disk": "Bytes on disk per finished execution, indexes included.",
    "start": "Cold start of `horae up` to the first execution finished.",
    "idle": "Processor time and memory of an idle `horae up`.",
    "stages": "The stages of an execution's life, timed one by one.",
}
