"""The SQLite driver: one process, one file (or none), one writer. Imported by `store.open` only."""
