"""Field tables: each field is declared once, and its reading, writing, documentation and CLI option follow from that.

Definitions, routes, commands, the SDK and the documentation import this package.
"""
