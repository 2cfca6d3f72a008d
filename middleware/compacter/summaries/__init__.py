"""What a summarizer reads, what it answers, and what can be said without one: pure text work."""

from __future__ import annotations

from compacter.summaries.redaction import redact_secrets

__all__ = ["redact_secrets"]
