"""Recall with a model, as pure functions: what it is told, what it may call, and what of its answer is believed."""
