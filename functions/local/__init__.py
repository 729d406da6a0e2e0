"""The same handlers without AWS: an HTTP gateway, a queue worker and a clock tick in one process."""
