"""Commands for namespaces, keys, secrets and signing in."""
