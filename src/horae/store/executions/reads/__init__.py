"""Scripts that read executions: lists, details, explanations, counts and audits; also housekeeping of other tables."""
