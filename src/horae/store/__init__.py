"""Tables and SQL of the kernel: the Store, the schema, a folder of scripts for each noun, and two drivers.

Other code uses a store by `contract.Store` and the scripts that it runs. Besides the server, only the commands
`horae db`, `horae doctor --offline` and `horae bench` open a store.
"""
