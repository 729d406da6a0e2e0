"""Agents: how conversations become memory and memory becomes answers, as pure functions and step machines."""
