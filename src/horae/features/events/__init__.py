"""Events from outside: sent by request or webhook, or found in watched folders and buckets."""
