"""Triggers: the instants at which a job fires, the outcome of each fire, and their API format.

Values, rules and decisions, all pure: the engine supplies the clock and the store.
"""
