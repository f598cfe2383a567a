"""The tables and scripts of events, webhooks and watches."""
