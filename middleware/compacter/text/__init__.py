"""Texts of any language: words and scripts, sentences, lines and JSON, shortening. Pure."""
