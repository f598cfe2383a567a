"""Operations: submit, fire, promote, claim, report, rescue, sweep; one `Node` puts them together.

Everything with a loop is a service with `step()`; only the runner loops and waits. `server` and `cli` import it.
"""
