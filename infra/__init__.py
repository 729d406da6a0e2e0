"""Adapters to the world: DynamoDB and S3, the embedded store, queues, secrets, models, time and chance.

What lives here: implementations of `core.ports`, which move bytes and translate faults. What must never live
here: any decision about what the bytes mean. Importing a module here does nothing; clients are built when asked.
"""
