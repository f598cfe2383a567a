"""Transactions of jobs that run after others: joins, arrivals and starts."""
