"""The engine of events: the intake, webhooks with their secrets, and watched places."""
