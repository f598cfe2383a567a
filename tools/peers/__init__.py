"""`make bench-peers`: Horae and its peers side by side, on one machine, in one run.

A peer is a folder: `__init__.py` says what it is and how it is run (`peer` has the words for it), `app.py` runs in the
peer's own virtual environment with the helpers of `inside`, `requirements.txt` pins that environment. `environment`
makes environments, `services` starts Redis and PostgreSQL, `rounds` measures, `report` writes docs/RESULTS-peers.md.
"""
