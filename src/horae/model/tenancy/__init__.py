"""Namespaces, principals, secrets and sealed values."""
