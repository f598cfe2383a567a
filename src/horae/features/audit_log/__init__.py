"""The audit log: who changed what, in a chain of rows that shows tampering. It cannot be switched off."""
