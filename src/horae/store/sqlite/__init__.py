"""The SQLite driver: a store in a file or in memory, used by one process with one writer.

Only `store.open` imports it.
"""
