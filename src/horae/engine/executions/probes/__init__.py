"""Probes: one function for each gate, which checks whether the gate blocks an execution or a job.

A probe is a coroutine function of (`Sources`, a case). It returns blockers, none when its gate is open, and changes
nothing. To add one: the gate in `model/executions/gates.py`, the function in a module here, a line in `table.py`, and a
scene in tests/engine/explain_scenes.py that closes the gate and opens it by the blocker's remedy.
"""
