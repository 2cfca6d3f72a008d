"""What compacter writes around the lines that it quotes."""

NAMES = "Names in earlier tool calls"
WORK = "Newest list of work"
"""Labels of lines that compacter makes of tool calls, in place of a speaker."""
SINCE = "Said after the user's next message:"
"""Line between the quotes from before a message that stays behind the summary, and those from after
it."""
INDENT = "\n  "
"""Begins the further lines of an entry, unlike those of a frame."""
