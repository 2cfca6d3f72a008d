"""litellm's ``trim_messages``: drops the oldest messages, no summary. Called before each call, as
its manual shows.

https://docs.litellm.ai/docs/completion/message_trimming. A window of its own is passed, as the
scripted model is in no table; its tokenizer counts. Errors are mapped by ``litellm``, whose
``ContextWindowExceededError`` programs catch.
"""

from __future__ import annotations

from base import Native, Peer
from litellm.litellm_core_utils.exception_mapping_utils import ExceptionCheckers
from litellm.utils import trim_messages


class Adapter(Peer):
    package = "litellm"
    imports = "from litellm.utils import trim_messages"
    keeps = False
    proactive = True

    def before(self, native: Native) -> Native:
        return trim_messages(list(native), max_tokens=self.settings.window, trim_ratio=0.75)

    def detects(self, error: Exception, text: str) -> bool:
        return (
            "context_length_exceeded" in text
            or ExceptionCheckers.is_error_str_context_window_exceeded(text)
        )
