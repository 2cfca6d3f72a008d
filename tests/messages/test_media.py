"""What media weigh in each message format, and what stands for them."""

from __future__ import annotations

import base64

import pytest
from tests.dialects import parts_of

from compacter.messages import parts
from compacter.messages.format import get_format
from compacter.messages.parts import Kind

_PDF = base64.b64encode(bytes(150_000)).decode()


@pytest.mark.parametrize(
    ("name", "message", "weight", "shown"),
    [
        pytest.param(
            "openai",
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://x.invalid/a.png", "detail": "low"},
                    }
                ],
            },
            parts.IMAGE_LOW_DETAIL,
            "[image/*]",
            id="openai-low-detail",
        ),
        pytest.param(
            "openai",
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"format": "mp3", "data": _PDF}}
                ],
            },
            parts.media_weight("audio/mp3", 150_000),
            "[audio/mp3, 150,000 bytes]",
            id="openai-audio",
        ),
        pytest.param(
            "openai",
            {
                "role": "user",
                "content": [
                    {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{_PDF}"}}
                ],
            },
            parts.media_weight("application/pdf", 150_000),
            "[application/pdf, 150,000 bytes]",
            id="openai-file",
        ),
        pytest.param(
            "anthropic",
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://x.invalid/a"}}
                ],
            },
            parts.IMAGE,
            "[image/*]",
            id="anthropic-url",
        ),
        pytest.param(
            "anthropic",
            {
                "role": "user",
                "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}],
            },
            parts.media_weight("application/pdf"),
            "[application/pdf]",
            id="anthropic-file",
        ),
        pytest.param(
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": _PDF},
                    }
                ],
            },
            parts.media_weight("application/pdf", 150_000),
            "[application/pdf, 150,000 bytes]",
            id="anthropic-pdf",
        ),
        pytest.param(
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "x" * 900},
                    }
                ],
            },
            900,
            "[text/plain, 900 bytes]",
            id="anthropic-text-document",
        ),
        pytest.param(
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "source": {
                            "type": "content",
                            "content": [{"type": "text", "text": "x" * 70}],
                        },
                    }
                ],
            },
            70,
            "[text/plain, 70 bytes]",
            id="anthropic-content-document",
        ),
        pytest.param(
            "responses",
            {
                "role": "user",
                "content": [
                    {"type": "input_file", "file_data": f"data:application/pdf;base64,{_PDF}"}
                ],
            },
            parts.media_weight("application/pdf", 150_000),
            "[application/pdf, 150,000 bytes]",
            id="responses-file",
        ),
        pytest.param(
            "responses",
            {
                "role": "user",
                "content": [{"type": "input_image", "file_id": "file_1", "detail": "low"}],
            },
            parts.IMAGE_LOW_DETAIL,
            "[image/*]",
            id="responses-image",
        ),
        pytest.param(
            "responses",
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"format": "mp3", "data": _PDF}}
                ],
            },
            parts.media_weight("audio/mp3", 150_000),
            "[audio/mp3, 150,000 bytes]",
            id="responses-audio",
        ),
        pytest.param(
            "responses",
            {"role": "user", "content": [{"type": "input_file", "file_data": _PDF}]},
            parts.media_weight("application/pdf", 150_000),
            "[application/pdf, 150,000 bytes]",
            id="responses-bare-data",
        ),
        pytest.param(
            "anthropic",
            {"role": "user", "content": [{"type": "container_upload", "file_id": "file_1"}]},
            parts.media_weight("application/octet-stream"),
            "[application/octet-stream]",
            id="anthropic-upload",
        ),
        pytest.param(
            "bedrock",
            {
                "role": "user",
                "content": [
                    {
                        "document": {
                            "format": "md",
                            "source": {"content": [{"text": "x" * 30}, {"text": "y"}]},
                        }
                    }
                ],
            },
            31,
            "[text/markdown, 31 bytes]",
            id="bedrock-content-document",
        ),
        pytest.param(
            "gemini",
            {
                "role": "user",
                "parts": [
                    {"file_data": {"file_uri": "gs://b/secret.mp4", "mime_type": "video/mp4"}}
                ],
            },
            parts.media_weight("video/mp4"),
            "[video/mp4]",
            id="gemini-file",
        ),
        pytest.param(
            "bedrock",
            {
                "role": "user",
                "content": [
                    {"document": {"format": "pdf", "name": "d", "source": {"bytes": bytes(90_000)}}}
                ],
            },
            parts.media_weight("application/pdf", 90_000),
            "[application/pdf, 90,000 bytes]",
            id="bedrock-pdf",
        ),
        pytest.param(
            "bedrock",
            {
                "role": "user",
                "content": [
                    {"document": {"format": "txt", "name": "d", "source": {"text": "x" * 50}}}
                ],
            },
            50,
            "[text/plain, 50 bytes]",
            id="bedrock-text-document",
        ),
        pytest.param(
            "bedrock",
            {
                "role": "user",
                "content": [
                    {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}}
                ],
            },
            parts.media_weight("video/mp4"),
            "[video/mp4]",
            id="bedrock-video",
        ),
    ],
)
def test_media_weigh_by_type_and_show_no_path(
    name: str, message: object, weight: int, shown: str
) -> None:
    (entry,) = parts_of(get_format(name), message)

    assert get_format(name).size(message) == weight
    assert (entry.kind, entry.text) == ("media", shown)


@pytest.mark.parametrize(
    ("part", "mime", "size"),
    [
        ({"type": "input_image", "input_image": "https://x.invalid/a"}, "image/*", None),
        ({"type": "image", "image": {"url": "https://x.invalid/a"}}, "image/*", None),
        (
            {"type": "image_url", "image_url": f"data:image/jpeg;base64,{_PDF}"},
            "image/jpeg",
            150_000,
        ),
        ({"type": "video_url", "video_url": {"url": "https://x.invalid/a"}}, "video/mp4", None),
        ({"type": "audio_url", "audio_url": {"url": "https://x.invalid/a"}}, "audio/mpeg", None),
        ({"type": "input_audio", "input_audio": {"data": _PDF}}, "audio/wav", 150_000),
        ({"type": "document", "source": {"data": _PDF}}, "application/pdf", 150_000),
        ({"type": "file", "file": {"file_id": "f", "format": "text/csv"}}, "text/csv", None),
    ],
)
def test_each_sort_of_part_of_a_chat_is_its_own_medium(
    part: object, mime: str, size: int | None
) -> None:
    message = {"role": "user", "content": [part]}
    (entry,) = parts_of(get_format("openai"), message)

    assert entry.text == (f"[{mime}, {size:,} bytes]" if size else f"[{mime}]")
    assert get_format("openai").size(message) == parts.media_weight(mime, size)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [
                            {"type": "text", "text": "seen"},
                            {
                                "type": "image",
                                "source": {
                                    "type": "base64",
                                    "media_type": "image/png",
                                    "data": _PDF,
                                },
                            },
                        ],
                    }
                ],
            },
        ),
        (
            "responses",
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [
                    {"type": "input_text", "text": "seen"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{_PDF}"},
                ],
            },
        ),
        (
            "gemini",
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "f",
                            "response": {"output": "seen"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": _PDF}}],
                        }
                    }
                ],
            },
        ),
        (
            "bedrock",
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "c1",
                            "content": [
                                {"text": "seen"},
                                {"image": {"format": "png", "source": {"bytes": bytes(90_000)}}},
                            ],
                        }
                    }
                ],
            },
        ),
    ],
)
def test_a_picture_in_a_result_is_the_tools_and_goes_when_the_result_is_edited(
    name: str, message: object
) -> None:
    reader = get_format(name)
    edited = reader.rewrite(message, lambda kind, text, _name: "gone" if kind == "result" else text)

    edits: list[tuple[str, str]] = []

    def edit(kind: str, text: str, _name: str) -> str:
        edits.append((kind, text))
        return text

    assert reader.rewrite(message, edit) is message
    assert edits == [("result", "seen")]
    assert [(entry.role, entry.kind) for entry in parts_of(reader, message)] == [
        ("tool", "result"),
        ("tool", "media"),
    ]
    assert parts.IMAGE < reader.size(message) < parts.IMAGE + 60
    assert reader.outline([message]).kinds == [Kind.RESULT]
    assert reader.size(edited) < 30
    assert [entry.kind for entry in parts_of(reader, edited)] == ["result"]


@pytest.mark.parametrize(
    ("mime", "size", "weight"),
    [
        # A token is four characters: an image is 1,000 tokens.
        ("image/png", 4_000_000, 4 * 1_000),
        ("Image/PNG", None, 4 * 1_000),
        ("audio/mpeg", 160_000, 1_000),
        ("audio/mpeg", 1, 100),
        ("text/plain", 700, 700),
        ("text/plain", 0, 0),
        ("text/plain", None, 4 * 1_000),
        ("application/pdf", 60_000, 6_400),
        ("application/pdf", 60_001, 12_800),
        ("application/pdf", None, 12_800),
        ("audio/mpeg", None, 3_000),
        ("model/obj", 10**9, parts.IMAGE),
        ("x-world/x-vrml", 5, parts.IMAGE),
        ("", 5, parts.IMAGE),
    ],
)
def test_a_medium_weighs_by_its_kind(mime: str, size: int | None, weight: int) -> None:
    assert parts.media_weight(mime, size) == weight


@pytest.mark.parametrize(
    ("detail", "tokens"), [("low", 85), ("high", 1_000), ("auto", 1_000), (None, 1_000)]
)
def test_an_image_of_low_detail_weighs_as_openai_prices_it(detail: str | None, tokens: int) -> None:
    assert parts.media_weight("image/png", detail=detail) == 4 * tokens


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"inlineData": {"data": "QUJD"}}, "[application/octet-stream, 3 bytes]"),
        ({"uri": "https://x.invalid/files/a"}, "[application/octet-stream]"),
        ({"mimeType": "image/png", "data": "QUJD"}, "[image/png, 3 bytes]"),
        ({"inlineData": {"mimeType": "image/png", "data": {"of": "another class"}}}, "[image/png]"),
        ({"inlineData": {"mimeType": "image/png", "data": "gs://bucket/a.png"}}, "[image/png]"),
    ],
)
def test_a_blob_of_gemini_is_a_medium_of_its_type_or_of_an_unknown_one(
    part: object, shown: str
) -> None:
    assert [
        entry.text for entry in parts_of(get_format("gemini"), {"role": "user", "parts": [part]})
    ] == [shown]


@pytest.mark.parametrize(
    ("told", "mime"), [({}, "image/png"), ({"output_format": "webp"}, "image/webp")]
)
def test_a_picture_that_openai_made_is_of_the_type_it_tells(
    told: dict[str, str], mime: str
) -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "result": "QUJD", **told}

    assert [entry.text for entry in parts_of(get_format("responses"), item)] == [
        f"[{mime}, 3 bytes]"
    ]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "image", "image_url": "data:image/png;base64,QUJD"}, "[image/png, 3 bytes]"),
        ({"type": "image", "url": "data:image/png;base64,QUJD"}, "[image/png, 3 bytes]"),
        (
            {"type": "computer_screenshot", "image_url": "data:;base64,QUJD"},
            ("[application/octet-stream, 3 bytes]"),
        ),
        ({"type": "input_audio", "input_audio": {"data": "QUJD"}}, "[audio/wav, 3 bytes]"),
        ({"type": "input_file", "file_id": "f"}, "[application/pdf]"),
    ],
)
def test_each_sort_of_part_of_an_item_is_its_own_medium(part: object, shown: str) -> None:
    message = {"role": "user", "content": [part]}

    assert [entry.text for entry in parts_of(get_format("responses"), message)] == [shown]


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"document": {"name": "d", "source": {"bytes": b"abc"}}}, "[application/pdf, 3 bytes]"),
        (
            {"document": {"format": "docx", "source": {"bytes": b"abc"}}},
            "[application/docx, 3 bytes]",
        ),
        ({"document": {"format": "csv", "source": {"bytes": b"abc"}}}, "[text/csv, 3 bytes]"),
        ({"image": {"source": {"bytes": b"abc"}}}, "[image/*, 3 bytes]"),
        (
            {"guardContent": {"image": {"format": "png", "source": {"bytes": b"abc"}}}},
            "[image/png, 3 bytes]",
        ),
    ],
)
def test_each_sort_of_block_of_bedrock_is_its_own_medium(block: object, shown: str) -> None:
    message = {"role": "user", "content": [block]}

    assert [entry.text for entry in parts_of(get_format("bedrock"), message)] == [shown]


@pytest.mark.parametrize("kind", ["audio_call", "web_search_call"])
def test_only_a_picture_that_openai_made_is_one(kind: str) -> None:
    item = {"type": kind, "id": "x_1", "result": "QUJD"}

    assert [entry.kind for entry in parts_of(get_format("responses"), item)] == ["call"]
