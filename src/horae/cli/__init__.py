"""The command line: one module per command group, imported only when its group is used.

It may import every layer below; no other layer imports it. All commands but `up`, `server`, `db` and `doctor --offline`
use HTTP.
"""
