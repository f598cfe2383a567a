"""`make prove-frameworks`: the SDK inside Flask, Django and Celery as they are deployed, with a real server."""
