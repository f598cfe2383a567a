"""Probes: one function for each gate, which checks whether the gate blocks an execution or a job.

A probe is a coroutine function of (`Sources`, a case). It returns blockers, none when its gate is open, and changes
nothing. To add a probe, add the gate to `model/executions/gates.py`, the function to a module of this package, a line
to `table.py`, and a scene to tests/engine/explain_scenes.py that closes the gate and opens it by the blocker's remedy.
"""
