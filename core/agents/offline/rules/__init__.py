"""The reader's rules, one family a file: each a table of patterns and what a match of it claims.

A pattern is matched right after the subject of a clause (see `rule.match_rules`), so it never finds a statement
in the middle of another one. To teach the reader something, add a row.
"""
