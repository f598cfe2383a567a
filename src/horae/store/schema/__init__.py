"""Tables: one portable definition for both databases.

Instants and durations are microseconds in BIGINT, JSON is TEXT, ids are native UUIDs on PostgreSQL and 16 bytes on
SQLite. Only `store/` and the tables of features import this. A change here needs an Alembic revision (CONTRIBUTING.md).
Revisions also create objects that only one of the databases needs: default partitions, an index and a view.
"""
