"""Summaries: written by a model in sections that are checked, or made as a timeline without one;
and their message.
"""
