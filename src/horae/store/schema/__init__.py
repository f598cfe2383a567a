"""Tables: one portable definition for both databases.

Instants are microseconds in BIGINT, JSON is TEXT, ids are native UUIDs on PostgreSQL and 16 bytes on SQLite. Only
`store/` imports this. A change here needs a revision that makes it (CONTRIBUTING.md). Revisions also make what a single
database needs: default partitions, an index and a view.
"""
