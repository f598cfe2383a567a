"""Commands that write jobs, and the options that spell their fields."""
