"""Commands that define jobs, and the options for their fields."""
