"""Scripts of executions: `entering` creates them, `leaving` ends them, `reads` reads them."""
