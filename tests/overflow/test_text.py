"""The plain form of a text: what terminals, encoders and keyboards do to a message is undone."""

from __future__ import annotations

import json
import textwrap

import pytest
from tests.overflow.phrases import detect_text

from compacter.overflow.text import limit_text, normalise

MAX_TEXT = 32_768
SENTENCE = "The prompt has 9000 tokens, which exceeds the maximum context length of 8192 tokens."


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[1;31mToo\x1b[0m long", "too long"),
        ("too\\nlong", "too long"),
        ('a \\"quoted\\" word', 'a "quoted" word'),
        ("a &gt; b &amp;&nbsp;c", "a > b & c"),
        ("ｍａｘ ８１９２", "max 8192"),
        ("trop long pour le modèle", "trop long pour le modele"),
        ("m\\u00fcssen", "mussen"),
        ("\\u8f93\\u5165", "输入"),
        ("\\\\\\\\u8f93", "输"),
        ("\\ud83d\\ude00 ok", "\U0001f600 ok"),
        ("no\u200bspace", "nospace"),
        ("8\u202f192", "8_192"),
        ("“a” ‘b’", "\"a\" 'b'"),
        ("9 ≤ 8 ≥ 7", "9 <= 8 >= 7"),
        ("see https://example.com/limit?max=1 now", "see now"),
        ("a\nb", "a b"),
    ],
)
def test_each_encoding_is_undone(raw: str, plain: str) -> None:
    assert normalise(raw) == plain


@pytest.mark.parametrize("separator", ["\n\n", "\nDetails: "])
def test_a_paragraph_ends_a_sentence(separator: str) -> None:
    assert "\x1e" in normalise(f"one{separator}two")


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "text",
    [
        "输入的 token 数 9000 超过了模型最大上下文长度 8192",
        ("Le prompt est trop long pour le modèle"),
    ],
)
def test_json_escapes_are_decoded_however_deep(text: str, depth: int) -> None:
    wrapped = text
    for _ in range(depth):
        wrapped = json.dumps({"error": wrapped})

    assert detect_text(wrapped) == detect_text(text) is not None


@pytest.mark.parametrize("width", [20, 34, 60])
def test_a_sentence_that_is_wrapped_between_words_is_found(width: int) -> None:
    lines = textwrap.wrap(SENTENCE, width)

    for text in ("\n".join(lines), "\n".join(f"│ {line.ljust(width)} │" for line in lines)):
        found = detect_text(text)

        assert found is not None
        assert (found.limit, found.requested) == (8192, 9000)


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    kept = limit_text("a" + "x" * MAX_TEXT + "z")

    assert kept[0] == "a"
    assert kept[-1] == "z"
    assert len(kept) <= MAX_TEXT + 3
    assert limit_text("y" * MAX_TEXT) == "y" * MAX_TEXT


def test_the_end_of_a_huge_text_is_read() -> None:
    found = detect_text("x" * 10_000_000 + " prompt is too long: 9000 tokens > 8192 maximum")

    assert found is not None
    assert found.requested == 9000
