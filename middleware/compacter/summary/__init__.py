"""The text of a summary: with a model in checked sections, without one as a timeline, and the message that carries it."""
