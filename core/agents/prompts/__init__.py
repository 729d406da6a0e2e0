"""What models are told: texts with version ids. They are ours, in our words; no text of a user ever stands in them."""
