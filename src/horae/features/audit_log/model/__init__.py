"""Entries of the audit log and their chain."""
