"""Tables and SQL of the kernel: the contract, the schema, scripts by noun, and two drivers beneath them.

`engine` imports `store.contract`. Apart from it, only `cli db` and `cli doctor --offline` open a store.
"""
