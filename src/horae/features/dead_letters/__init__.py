"""Dead letters: failed executions set aside, grouped, retried, replayed or discarded."""
