"""Scripts of workflows: advancing steps, pausing, rerunning and results."""
