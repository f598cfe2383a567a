"""Transactions of namespaces, keys, enrolments and secrets."""
