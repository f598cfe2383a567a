"""What is remembered: the only place with SQL. The contract, the schema, the moves, and two drivers beneath them.

`engine` imports `store.contract`; nobody else opens a store but `cli db` and `cli doctor --offline`.
"""
