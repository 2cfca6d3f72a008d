"""What a message is to us: whatever the provider's SDK takes."""

from __future__ import annotations

from typing import Any, TypeAlias

Message: TypeAlias = Any
"""One provider-native item, a dict or an SDK object; read, never changed."""
