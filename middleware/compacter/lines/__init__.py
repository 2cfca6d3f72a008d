"""A conversation, read once into lines that carry what they depend on; chosen for a summary
(``keep``), and for a question or a step (``quotes``). Pure.
"""
