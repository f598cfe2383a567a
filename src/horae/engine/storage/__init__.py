"""File storage: a folder of this machine or a bucket of an object store."""
