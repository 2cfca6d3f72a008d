"""One wrapped call: its arguments, its policy, performing the effects, and streams."""
