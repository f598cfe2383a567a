"""The commands of alerts, alert rules and channels."""
