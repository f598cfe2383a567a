"""Tables: one portable definition for both databases.

Instants are microseconds in BIGINT, JSON is TEXT, ids are native UUIDs on PostgreSQL and 16 bytes on SQLite. Only
`store/` imports this. What a single database needs beyond it (default partitions, the view) stands in
`ddl.py`; a released store is changed by a migration, never here alone.
"""
