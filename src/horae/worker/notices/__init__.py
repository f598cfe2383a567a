"""Termination notices of the machine, so that workers drain in time."""
