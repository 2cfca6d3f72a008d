"""A real model as the agent, with its history in a window that is too small."""
