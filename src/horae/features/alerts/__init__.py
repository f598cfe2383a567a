"""Alerts: rules that watch jobs, queues and workers, and channels that tell people.

Rules are checked by a service; what they find becomes an alert with notices, delivered by mail, webhook or chat.
"""
