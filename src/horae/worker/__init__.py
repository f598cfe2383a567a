"""The worker: its session with a server, the runners for each kind of job, and the loop that connects them.

`session` is the protocol as a state machine without I/O, which the simulation also drives; `worker` is the loop. This
layer talks to servers only through `transport` and never imports server, store, engine or client.
"""
