"""The audit log's tables and scripts."""
