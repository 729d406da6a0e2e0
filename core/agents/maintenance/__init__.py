"""Maintenance without a model: what time does to a memory, and what is worth a look, decided by rules alone.

What lives here: one small step of each pass, written through a Draft, and the values that say how far it came.
What must never live here: I/O, leases, and whose turn it is (`core.service.maintenance`). No step does more than
its bound says, however large the space is, and none erases anything or touches confidence, salience, utility,
trust or the schema: what fades is only how easily something is recalled.
"""
