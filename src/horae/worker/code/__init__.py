"""Running user code: the context it gets, durable steps, failures, artifacts and transactions."""
