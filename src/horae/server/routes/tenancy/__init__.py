"""Routes of namespaces, keys, secrets and the caller."""
