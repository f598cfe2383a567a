"""Scripts that read executions: lists, details, explain, depths and audits."""
