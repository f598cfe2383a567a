"""Triggers: the instants at which a job fires, the outcome of each fire, and their API format.

All functions are pure: the engine passes the time and the stored state to them.
"""
