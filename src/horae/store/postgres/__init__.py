"""The PostgreSQL driver: asyncpg with one small pool for hot operations and another for everything else.

Only `store.open` imports it, because asyncpg is an extra.
"""
