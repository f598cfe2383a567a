"""Tables and SQL of the kernel: the contract, the schema, scripts by noun, and two drivers beneath them.

`engine` imports `store.contract`; nobody else opens a store but `cli db` and `cli doctor --offline`.
"""
