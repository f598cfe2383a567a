"""Logs of executions: reading, following and searching them. Writing them is the kernel's."""
