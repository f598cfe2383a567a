"""Commands for what decides whether work may start: queues, circuit breakers and keyed limits."""
