"""How a space is written down: names of rows and objects, bytes of deltas and segments, what rows mean. Pure."""
