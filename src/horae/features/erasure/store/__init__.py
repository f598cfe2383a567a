"""Transactions that erase data."""
