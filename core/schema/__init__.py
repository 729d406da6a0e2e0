"""Schema Packages: what the names of a space mean and which values they admit (KIP §20).

What lives here: package artifacts and their verification, name resolution in a space's Schema Environment, and
the checks of values against definitions. What must never live here: state, authority, or any way for cognitive
content to change a schema.
"""
