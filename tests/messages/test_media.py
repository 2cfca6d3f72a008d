"""Weights of media in each message format, and their placeholders."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.dialects import parts_of

from compacter.messages import parts
from compacter.messages.format import get_format
from compacter.messages.parts import Kind, media_weight

DATA = base64.b64encode(bytes(150_000)).decode()
PDF = f"data:application/pdf;base64,{DATA}"
PNG = "data:image/png;base64,QUJD"
LINK = "https://x.invalid/a.png"


def holding(name: str, block: Any) -> dict[str, Any]:
    """Return a user's message with this block."""
    return {"role": "user", get_format(name).body: [block]}


def source(**members: Any) -> dict[str, Any]:
    return {"source": members}


OPENAI: list[tuple[Any, str, int | None]] = [
    ({"type": "image_url", "image_url": {"url": LINK}}, "image/*", None),
    ({"type": "image_url", "image_url": f"data:image/jpeg;base64,{DATA}"}, "image/jpeg", 150_000),
    ({"type": "input_image", "input_image": LINK}, "image/*", None),
    ({"type": "image", "image": {"url": LINK}}, "image/*", None),
    ({"type": "video_url", "video_url": {"url": LINK}}, "video/*", None),
    ({"type": "audio_url", "audio_url": {"url": LINK}}, "audio/*", None),
    ({"type": "input_audio", "input_audio": {"data": DATA}}, "audio/*", 150_000),
    ({"type": "input_audio", "input_audio": {"format": "mp3", "data": DATA}}, "audio/mp3", 150_000),
    ({"type": "document", "source": {"data": DATA}}, "application/pdf", 150_000),
    ({"type": "file", "file": {"file_data": PDF}}, "application/pdf", 150_000),
    ({"type": "file", "file": {"file_id": "f", "format": "text/csv"}}, "text/csv", None),
]
ANTHROPIC: list[tuple[Any, str, int | None]] = [
    ({"type": "image", **source(type="url", url=LINK)}, "image/*", None),
    ({"type": "document", **source(type="file", file_id="file_1")}, "application/pdf", None),
    (
        {"type": "document", **source(type="base64", media_type="application/pdf", data=DATA)},
        "application/pdf",
        150_000,
    ),
    (
        {"type": "document", **source(type="text", media_type="text/plain", data="x" * 900)},
        "text/plain",
        900,
    ),
    (
        {
            "type": "document",
            **source(type="content", content=[{"type": "text", "text": "x" * 70}]),
        },
        "text/plain",
        70,
    ),
    ({"type": "container_upload", "file_id": "file_1"}, "application/octet-stream", None),
]
RESPONSES: list[tuple[Any, str, int | None]] = [
    ({"type": "input_file", "file_data": PDF}, "application/pdf", 150_000),
    ({"type": "input_file", "file_data": DATA}, "application/pdf", 150_000),
    ({"type": "input_file", "file_id": "f"}, "application/pdf", None),
    ({"type": "input_audio", "input_audio": {"format": "mp3", "data": DATA}}, "audio/mp3", 150_000),
    ({"type": "input_audio", "input_audio": {"data": "QUJD"}}, "audio/*", 3),
    ({"type": "image", "image_url": PNG}, "image/png", 3),
    ({"type": "image", "url": PNG}, "image/png", 3),
    (
        {"type": "computer_screenshot", "image_url": "data:;base64,QUJD"},
        "application/octet-stream",
        3,
    ),
]
GEMINI: list[tuple[Any, str, int | None]] = [
    ({"file_data": {"file_uri": "gs://b/a.mp4", "mime_type": "video/mp4"}}, "video/mp4", None),
    ({"inlineData": {"data": "QUJD"}}, "application/octet-stream", 3),
    ({"uri": "https://x.invalid/files/a"}, "application/octet-stream", None),
    ({"mimeType": "image/png", "data": "QUJD"}, "image/png", 3),
    ({"inlineData": {"mimeType": "image/png", "data": {"of": "another"}}}, "image/png", None),
    ({"inlineData": {"mimeType": "image/png", "data": "gs://bucket/a.png"}}, "image/png", None),
]
BEDROCK: list[tuple[Any, str, int | None]] = [
    ({"document": {"format": "pdf", **source(bytes=bytes(90_000))}}, "application/pdf", 90_000),
    ({"document": {"name": "d", **source(bytes=b"abc")}}, "application/pdf", 3),
    ({"document": {"format": "docx", **source(bytes=b"abc")}}, "application/docx", 3),
    ({"document": {"format": "csv", **source(bytes=b"abc")}}, "text/csv", 3),
    ({"document": {"format": "txt", **source(text="x" * 50)}}, "text/txt", 50),
    (
        {"document": {"format": "md", **source(content=[{"text": "x" * 30}, {"text": "y"}])}},
        "text/md",
        31,
    ),
    ({"video": {"format": "mp4", **source(s3Location={"uri": "s3://b/k"})}}, "video/mp4", None),
    ({"image": source(bytes=b"abc")}, "image/*", 3),
    ({"guardContent": {"image": {"format": "png", **source(bytes=b"abc")}}}, "image/png", 3),
]
EACH = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
}


@pytest.mark.parametrize(
    ("name", "block", "mime", "size"), [(name, *row) for name in EACH for row in EACH[name]]
)
def test_media_weigh_by_type_and_show_no_path(
    name: str, block: Any, mime: str, size: int | None
) -> None:
    """A medium is shown by its type and bytes alone, and weighs what they say."""
    message = holding(name, block)
    (entry,) = parts_of(get_format(name), message)

    assert (entry.kind, entry.text) == (
        "media",
        f"[{mime}, {size:,} bytes]" if size else f"[{mime}]",
    )
    assert get_format(name).size(message) == media_weight(mime, size or 0)


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("openai", {"type": "image_url", "image_url": {"url": LINK, "detail": "low"}}),
        ("responses", {"type": "input_image", "file_id": "file_1", "detail": "low"}),
    ],
)
def test_a_picture_of_low_detail_weighs_less(name: str, block: Any) -> None:
    """The option ``detail`` of OpenAI's pictures sets what they cost."""
    assert get_format(name).size(holding(name, block)) == parts.IMAGE_LOW_DETAIL


PICTURE = {"type": "image", **source(type="base64", media_type="image/png", data=DATA)}


SEEN = [{"type": "text", "text": "seen"}, PICTURE]
INLINE = {"inlineData": {"mimeType": "image/png", "data": DATA}}
RESPONSE = {"name": "f", "response": {"output": "seen"}, "parts": [INLINE]}
OUTPUT = [
    {"type": "input_text", "text": "seen"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
]
SHOT = {"toolUseId": "c1", "content": [{"text": "seen"}, {"image": source(bytes=bytes(90_000))}]}
RESULTS: dict[str, Any] = {
    "anthropic": {"type": "tool_result", "tool_use_id": "c1", "content": SEEN},
    "responses": {"type": "function_call_output", "call_id": "c1", "output": OUTPUT},
    "gemini": {"functionResponse": RESPONSE},
    "bedrock": {"toolResult": SHOT},
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_picture_in_a_result_is_the_tools_and_goes_when_the_result_is_edited(name: str) -> None:
    """Only the text of a result is edited; its picture goes with the old text."""
    reader = get_format(name)
    result = RESULTS[name]
    message = result if name == "responses" else holding(name, result)
    edits: list[tuple[str, str]] = []

    def edit(kind: str, text: str, _name: str) -> str:
        edits.append((kind, text))
        return text

    edited = reader.rewrite(message, lambda kind, text, _name: "gone" if kind == "result" else text)
    shown = [(entry.role, entry.kind) for entry in parts_of(reader, message)]

    assert reader.rewrite(message, edit) is message
    assert edits == [("result", "seen")]
    assert shown == [("tool", "result"), ("tool", "media")]
    assert parts.IMAGE < reader.size(message) < parts.IMAGE + 60
    assert reader.outline([message]).kinds == [Kind.RESULT]
    assert reader.size(edited) < 30
    assert [entry.kind for entry in parts_of(reader, edited)] == ["result"]


@pytest.mark.parametrize(
    ("mime", "size", "weight"),
    [
        # A token is four characters: an image is 1,000 tokens.
        ("image/png", 4_000_000, 4 * 1_000),
        ("Image/PNG", 0, 4 * 1_000),
        ("audio/mpeg", 160_000, 1_000),
        ("audio/mpeg", 1, 1),
        ("video/mp4", 0, 3_000),
        ("text/plain", 700, 700),
        ("text/plain", 0, 4 * 1_000),
        ("application/pdf", 63_000, 7_000),
        ("application/pdf", 0, 12_800),
        ("model/obj", 10**9, parts.IMAGE),
        ("", 5, parts.IMAGE),
    ],
)
def test_a_medium_weighs_by_its_kind_and_bytes(mime: str, size: int, weight: int) -> None:
    """A second of sound has 16 kB, a page 60; of an address nothing is known."""
    assert media_weight(mime, size) == weight


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ({"type": "image_generation_call"}, ("media", "[image/*, 3 bytes]")),
        (
            {"type": "image_generation_call", "output_format": "webp"},
            ("media", "[image/webp, 3 bytes]"),
        ),
        ({"type": "audio_call"}, ("call", "")),
        ({"type": "web_search_call"}, ("call", "")),
    ],
)
def test_a_picture_that_openai_made_is_of_the_type_it_states(
    item: dict[str, str], shown: tuple[str, str]
) -> None:
    """Only an ``image_generation_call`` has a picture as its result."""
    read = parts_of(get_format("responses"), {"id": "ig_1", "result": "QUJD", **item})
    assert [(entry.kind, entry.text) for entry in read] == [shown]
