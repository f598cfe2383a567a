"""Transactions that read and change namespaces, API keys, enrolments and secrets."""
