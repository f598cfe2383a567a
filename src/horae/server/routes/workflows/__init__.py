"""Routes of workflows and their steps."""
