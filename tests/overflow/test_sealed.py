"""Errors that say that a conversation has what only another model can read."""

from __future__ import annotations

import pytest

from compacter.overflow import detect_token_limit, is_sealed


class RefusedError(Exception):
    """An error of a vendor's SDK."""

    def __init__(self, text: str, status: int | None = 400, code: str | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.code = code


SEALED = (
    # OpenAI's, and its models' on Bedrock.
    "Error code: 400 - {'error': {'message': 'Bad request', 'code': 'invalid_encrypted_content'}}",
    "The encrypted content for item rs_68 could not be verified.",
    "Reason: Encrypted content could not be decrypted or parsed.",
    "Encrypted content organization_id did not match the target organization.",
    "Could not decrypt the provided encrypted_content",
    "Item 'rs_68' of type 'reasoning' was provided without its required following item.",
    "encrypted reasoning was created for a different account or model",
    # Anthropic's, on all clouds.
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.3.content.0.thinking.signature: Field required",
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    # Gemini's.
    "Corrupted thought signature.",
    "Unable to submit request because Thought signature is not valid.. Learn more",
    "Invalid value at 'parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed",
    "Function call is missing a thought_signature in functionCall parts.",
)


@pytest.mark.parametrize("text", SEALED)
def test_a_text_that_names_what_is_sealed_and_its_fault_is_known(text: str) -> None:
    """Each provider's refusal after a change of model is recognised, and is not a token limit."""
    assert is_sealed(RefusedError(text))
    assert detect_token_limit(RefusedError(text)) is None


def test_it_is_known_by_its_code_in_an_exception_in_a_body_and_behind_another_error() -> None:
    code = "invalid_encrypted_content"
    behind = RuntimeError("the model could not be asked")
    behind.__cause__ = RefusedError("Bad request", code=code)

    assert is_sealed(RefusedError("Bad request", code=code))
    assert is_sealed({"code": code, "message": "Bad request"})
    assert is_sealed(behind)


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("prompt is too long: 9000 tokens > 8192 maximum"),
        RefusedError("Invalid signature: the request signature we calculated does not match", 403),
        RefusedError("Incorrect API key provided. You can find your API key at ...", 401),
        RefusedError("Invalid `signature` in `thinking` block", 401),
        RefusedError("The encrypted content could not be verified", 529),
        RefusedError("`thinking` blocks are not supported by this model"),
        RefusedError("Invalid value: 'thinking'. Supported values are: 'text'"),
        RefusedError("messages.1: tool_use ids were found without tool_result blocks"),
        RefusedError("The signature of the token is invalid or expired"),
        RefusedError("Encrypted content is not supported with this model."),
        RefusedError("reasoning.effort: expected one of low, medium, high"),
        RefusedError("thinking.budget_tokens: field required"),
        ValueError("thought"),
        KeyError("thought_signature"),
    ],
)
def test_no_other_error_is_one(error: Exception) -> None:
    assert not is_sealed(error)


def test_an_error_that_cannot_be_read_is_none() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert not is_sealed(UnreadableError())
