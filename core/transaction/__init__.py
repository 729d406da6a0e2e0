"""Transactions: tentative writes over a start state, and the one commit they become."""
