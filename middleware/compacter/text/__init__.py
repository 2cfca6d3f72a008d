"""Shorten a text, take colours out of it; show results as a table. Pure."""
