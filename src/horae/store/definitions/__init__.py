"""Transactions of jobs, their versions and their pages."""
