"""How a space is written down: names, bytes, rows, segments, and the rules that hold between them."""
