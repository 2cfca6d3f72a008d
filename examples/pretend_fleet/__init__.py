"""A fleet to try the plug-in of the LiteLLM proxy with: a provider, Redis, two workers, three kinds
of client.
"""
