"""Operations: submit, fire, promote, claim, report, rescue, sweep. A `ServerNode` is composed of them.

Everything that loops is a service with a method `step()`; only the runner loops and waits. `server` and `cli` import
it.
"""
