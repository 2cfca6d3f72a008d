"""The text of a summary. Pure: no client, no clock."""
