"""One wrapped call: reading its arguments, deciding what to do, doing it, and streams."""
