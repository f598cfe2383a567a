"""The engine of alerts: it manages rules and channels, evaluates rules, and delivers notices.

Routes call `Alerts`, `AlertRules` and `AlertChannels`. `AlertWatch` and `AlertDelivery` are services.
"""
