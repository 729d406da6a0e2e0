"""Embedders: texts as vectors, by a table of words, a small network or a service. `factory` opens them by name."""
