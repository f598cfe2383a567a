"""Scripts that begin, advance, pause, cancel and rerun workflows, and scripts that read their results."""
