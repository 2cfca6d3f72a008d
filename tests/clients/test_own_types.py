"""Messages of frameworks, read as OpenAI has them and written back."""

from __future__ import annotations

from compacter.clients.own_types import mixed, unmixed


def test_texts_and_media_come_back_in_their_order() -> None:
    picture = object()
    assert unmixed(mixed(["Look.", picture, "Well?"])) == ["Look.", picture, "Well?"]
    assert unmixed(mixed("Look.")) == "Look."


def test_a_medium_that_nobody_has_is_left_out() -> None:
    assert unmixed([{"type": "text", "text": "Look."}, {"type": "image_url"}]) == ["Look."]
    assert unmixed(None) == ""
