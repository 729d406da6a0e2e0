"""Migration from KIP 1.x: a graph of Concepts and fact-like Propositions becomes KIP 2.0 (KIP §103).

1.x mixed what a statement means with who believed it, how strongly, and for how long it was kept. Taking it over is a
decomposition, field by field, and one rule stands above all others: nothing is invented. Where the old graph cannot
tell what a value meant, the value is kept as it was in a facet `LegacyKIP1`, and the report says so by class.
"""
