"""Starting, judging and ending rollouts, and choosing the version of an execution."""
