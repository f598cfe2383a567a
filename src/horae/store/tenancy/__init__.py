"""Scripts of namespaces, keys, enrolments and secrets."""
