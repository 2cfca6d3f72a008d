"""Reading what a provider calls a message: one file a format, one `Part` for a piece of any of
them.
"""
