"""The command line: one module per command group, imported only when its group is used.

It sees every layer below; nothing imports it. All but `up`, `server`, `db` and `doctor --offline` go over HTTP.
"""
