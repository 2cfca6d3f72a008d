"""Adapters between the flow and the world: functions, vendors' clients, their streams and replies."""
