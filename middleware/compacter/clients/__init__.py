"""Adapters of vendors' clients and of frameworks: their methods, arguments, streams and replies."""
