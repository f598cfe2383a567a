"""Frozen values and pure decisions.

No I/O, no clock, no third-party I/O library. Every layer may import this one; it imports only `env` and `errors`.
"""
