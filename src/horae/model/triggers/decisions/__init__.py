"""Triggers: when a job fires, what becomes of each fire, and how both are written.

Values, rules and decisions, all pure: the engine brings the clock and the store.
"""
