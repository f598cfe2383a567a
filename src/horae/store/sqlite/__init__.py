"""The SQLite driver: one process, one file or memory, one writer. Only `store.open` imports it."""
