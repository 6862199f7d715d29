"""What servers give, as parts."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types

from tenlines.core.transcript import Image, Json, Part, Text
from tenlines.tools.mcp import results
from tenlines.tools.render import render

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def value(*content: types.ContentBlock, **more: Any) -> Any:
    return results.of_call(types.CallToolResult(content=list(content), **more))


def parts(*content: types.ContentBlock, **more: Any) -> tuple[Part, ...]:
    return render(value(*content, **more), 4_000).parts


def test_nothing_is_no_output() -> None:
    assert parts() == (Text("(no output)"),)
    assert parts(types.TextContent(text="")) == (Text(""),)


def test_structured_content_stands_for_the_text_that_repeats_it() -> None:
    said = types.TextContent(text='{"b": [1.0], "a": null}')
    assert parts(said, structured_content={"a": None, "b": [1]}) == (Json({"a": None, "b": [1]}),)
    other = types.TextContent(text="2 rows")
    assert parts(other, structured_content=[1, 2]) == (Text("2 rows"), Json([1, 2]))
    assert parts(structured_content={"a": 1}) == (Json({"a": 1}),)
    assert len(parts(types.TextContent(text="{" * 100_000), structured_content={"a": 1})) >= 1


def test_binary_content_that_is_too_large_is_a_line() -> None:
    large = base64.b64encode(bytes(results.MOST_BYTES + 1)).decode()
    [part] = parts(types.ImageContent(data=large, mime_type="image/png"))
    assert isinstance(part, Text)
    assert part.text.startswith("(image, image/png, 10,000,001 bytes, not shown")


def test_kinds_of_images_that_no_model_sees_are_files() -> None:
    [shown] = parts(types.ImageContent(data=PNG, mime_type="IMAGE/PNG; q=1"))
    assert isinstance(shown, Image)
    assert shown.media_type == "image/png"
    [other] = parts(types.ImageContent(data=PNG, mime_type="image/svg+xml"))
    assert not isinstance(other, Image)


def test_an_error_has_the_words_of_the_server() -> None:
    def words(*content: types.ContentBlock, **more: Any) -> str:
        return results.words_of(types.CallToolResult(content=list(content), is_error=True, **more))

    assert words(types.TextContent(text="no"), types.ImageContent(data=PNG, mime_type="image/png")).startswith(
        "no\n(image"
    )
    assert words(structured_content={"code": 3}) == '{"code": 3}'
    assert words() == "the server says that it failed, and nothing more"
