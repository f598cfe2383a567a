"""Transactions that read and change jobs, with their versions, templates, rollouts and owned jobs."""
