"""Erasure of the data of executions, and of whole namespaces."""
