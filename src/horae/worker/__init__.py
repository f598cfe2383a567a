"""Who does the work: the session with a server, the runners of each kind of job, and the loop between them.

`session` is the protocol as a state machine without I/O, which the simulation drives too; `worker` is the loop.
This layer speaks to servers only through `transport` and never imports server, store, engine or client.
"""
