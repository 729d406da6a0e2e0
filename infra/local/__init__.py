"""The embedded store: one SQLite file for rows, one directory for objects, an in-process queue."""
