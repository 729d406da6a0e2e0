"""The transports: HTTP, queue and schedule events in, calls of `core.service`, answers out. No rules of memory."""
