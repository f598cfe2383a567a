"""`make prove-frameworks`: the SDK inside Flask, Django and Celery as they are deployed, against a real server."""
