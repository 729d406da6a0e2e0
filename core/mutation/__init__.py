"""KML: what each family of mutation does to a transaction (KIP §51-61).

What lives here: one statement at a time, from its bound tree to writes in a `Draft`. What must never live here:
parsing, the request envelope, committing. A statement is a graph: every identity is settled first, every
selection and every expression reads the state in which the statement began, and only then is anything written.
"""

from core.mutation.statement import MutationResult, mutate

__all__ = ["MutationResult", "mutate"]
