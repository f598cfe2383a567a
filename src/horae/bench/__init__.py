"""`horae bench`: what Horae does on this machine, measured on real processes over HTTP.

A module a bench, named in BENCHES; `stage` starts servers and workers, `stores` brings what they remember in, `results`
prints. Only `cli` imports this package.
"""

BENCHES = {
    "throughput": "Executions a second: submitted in bulk, run by a worker, results stored.",
    "latency": "How soon an idle system starts what is submitted.",
    "growth": "Throughput with a long history, against throughput on an empty store.",
    "submit": "Submissions a second over HTTP, in bulk and one by one.",
    "idle": "Processor time and memory of an idle `horae up`.",
    "concurrency": "Memory of a worker that holds many async executions.",
}
