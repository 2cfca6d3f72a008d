"""Reading a history: wire formats, steps and turns, sizes, cuts and validation. Pure."""
