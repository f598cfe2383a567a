"""Notices of a machine about to be taken away, by which workers drain in time."""
