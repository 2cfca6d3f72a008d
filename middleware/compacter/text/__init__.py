"""Shorten a text; show results as a table. Pure."""
