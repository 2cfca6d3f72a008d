"""Summaries without a model, and what every summary keeps word for word."""
