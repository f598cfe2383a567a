"""Operations: submit, fire, promote, claim, report, rescue, sweep. A `ServerNode` is composed of them.

All periodic work is done by services with a method `step()`; only the runner of the services loops and waits. The
packages `server` and `cli` import this package.
"""
