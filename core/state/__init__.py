"""The state of one space at one point of its log, as lookups over immutable layers."""
