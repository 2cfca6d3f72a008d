"""The text of a summary: how a model is asked for one, what of its answer is kept, and the message that carries it."""
