"""The command line: one module per command group, imported only when its group is used.

It may import every layer below; no other layer imports it. Only `up`, `server`, `db`, `bench` and `doctor --offline`
open a store; all other commands reach the server over HTTP.
"""
