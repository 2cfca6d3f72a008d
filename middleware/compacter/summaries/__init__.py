"""What a summarizer reads, what it answers, and what can be said without one: pure text work."""
