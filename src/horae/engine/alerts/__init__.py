"""Alerts: rules and channels as people manage them, the watch that looks, and the delivery of notices.

`Alerts` is what the server sees; `AlertWatch` and `AlertDelivery` are the services behind it.
"""

from horae.engine.alerts.alerts import Alerts
from horae.engine.alerts.delivery import AlertDelivery
from horae.engine.alerts.watch import AlertWatch

__all__ = ("AlertDelivery", "AlertWatch", "Alerts")
