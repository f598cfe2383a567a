"""The PostgreSQL driver: asyncpg, a small pool for the hot moves and another for everything else.

Imported by `store.open` only, because asyncpg is an extra.
"""
