"""Formation with a model, the pure part: what it is shown of a conversation, and what its run comes to."""
