"""`make bench-peers`: Horae and its peers side by side, on one machine, in one run.

A peer is a folder: `__init__.py` describes it with the classes of `peer`, `app.py` runs in the peer's own virtual
environment with the helpers of `inside`, `requirements.txt` pins that environment. `environment` creates environments,
`services` starts Redis and PostgreSQL, `rounds` measures, `report` writes docs/RESULTS-peers.md.
"""
