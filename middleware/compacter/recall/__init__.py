"""Search in compacted messages: passages, the index over them, and quotes of those that fit a
question.
"""
