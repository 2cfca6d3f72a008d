"""The text of a summary: by a model in checked sections, or without one as a timeline; and the message with it."""
