"""Commands for workers: run one, enrol, drain and scale them."""
