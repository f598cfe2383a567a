"""Alert rules, channels, alerts and notices: values and pure decisions."""
