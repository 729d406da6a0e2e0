"""Belief as a view: what the Assertions on record amount to, under a named policy (KIP §21-27).

What lives here: the projection pipeline, the two policies and protected trust. What must never live here: the
query language (`core.query` calls this) and anything that writes: a projection is read-only (KIP §21.2).
"""
