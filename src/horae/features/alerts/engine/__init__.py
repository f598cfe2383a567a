"""The engine of alerts: managing rules and channels, evaluating rules, and delivering notices.

Routes call `Alerts`, `AlertRules` and `AlertChannels`; `AlertWatch` and `AlertDelivery` are the services.
"""
