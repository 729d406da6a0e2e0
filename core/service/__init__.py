"""Use cases: what the product does for a caller, over the ports and the pure core.

Here the pure core meets time, chance and the store, all as arguments (`core.ports`). Transports call these
services and add nothing but decoding and encoding.
"""
