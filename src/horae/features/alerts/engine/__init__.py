"""Alerts: rules and channels as people manage them, the watch that looks, and the delivery of notices.

`Alerts` is what the server sees; `AlertWatch` and `AlertDelivery` are the services behind it.
"""
