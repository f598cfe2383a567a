"""Scripts of workflows: beginning and advancing them, pausing, cancelling and rerunning them, and their results."""
