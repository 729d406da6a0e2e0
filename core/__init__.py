"""Noema's mind: pure Python that takes values and returns values.

Nothing below this package reads a clock, draws a random number, opens a file or looks at the environment;
`infra` does that, through the ports in `core.ports`. It imports the standard library, msgspec and a
pure-Python stemmer, so it also runs in Pyodide.
"""
