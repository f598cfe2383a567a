"""Scripts of sessions and servers: exchanges, claims, rescue, timeouts of running executions, and scaling."""
