"""Cognitive Capsules: memory as a portable, inspectable artifact, and what an import of one would do (KIP §37-41).

What lives here: the artifact's shape, making one from a state, checking one, planning and applying an import. What
must never live here: storage, keys, and the decision who may call (`core.authority` decides on each element).

A Capsule carries meaning and lineage, and no authority: nothing in one changes policy, trust, schema, identity of
the destination or anybody's permissions. Ids of the source are provenance; the destination gives its own.
"""
