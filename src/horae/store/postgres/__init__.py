"""The PostgreSQL driver: asyncpg with two small pools, one for hot (frequent) operations and one for all others.

Only `store.open` imports it, because asyncpg is an optional dependency.
"""
