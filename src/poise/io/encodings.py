"""Text in UTF-16, which some editors write."""

from __future__ import annotations

from poise.model.errors import SceneError


def is_wide(content: bytes) -> bool:
    """Whether a file begins with the mark of UTF-16."""
    return content[:2] in (b"\xff\xfe", b"\xfe\xff")


def decoded_wide(content: bytes, file: str | None) -> str:
    """The text of a file in UTF-16."""
    try:
        return content.decode("utf-16")
    except UnicodeDecodeError as error:
        line = content[: error.start].decode("utf-16", errors="replace").count("\n") + 1
        raise SceneError("it begins like UTF-16 and is not; save the file as UTF-8", file=file, line=line) from None
