"""Language models as values: what is asked of one, what it answers, what may be spent, and how a run with one goes."""
