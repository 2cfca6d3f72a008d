"""What was folded can be asked for: passages, the index over them, and the quotes that a question brings."""
