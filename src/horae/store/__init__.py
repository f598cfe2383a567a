"""Tables and SQL of the kernel: the store's contract, the schema, a folder of scripts for each noun, and two drivers.

The engine uses a store by `store.contract`. Besides the server, only the commands `horae db`, `horae doctor --offline`
and `horae bench` open a store.
"""
