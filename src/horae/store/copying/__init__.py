"""Copies of a store: backups, and moves from one database to another."""
