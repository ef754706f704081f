"""Films as mp4 (H.264) by ffmpeg, from the PATH or from the package imageio-ffmpeg."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any

from poise.model.errors import SceneError
from poise.view.png import checked_picture

_MISSING = "mp4 needs ffmpeg: install it, or pip install imageio-ffmpeg, or the extra poise[video]; or save a .gif"


def save_mp4(path: str | os.PathLike[str], frames: Iterable[Any], fps: float) -> None:
    """Write pictures (height, width, 3) of bytes as mp4, `fps` per second. Only one is in memory at a time.

    Odd sides get an additional row or column, as H.264 players need even ones.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_mp4(f"{folder}/grey.mp4", [np.full((48, 64, 3), grey, np.uint8) for grey in (0, 99)], 10.0)
    """
    program = find_ffmpeg()
    pictures = iter(frames)
    first = next(pictures, None)
    if first is None:
        raise SceneError("a film needs at least one picture, found none", field="frames")
    image = checked_picture(first, colors_only=True)
    height, width = image.shape[:2]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:.9g}", "-i", "-"]
    even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2,scale=out_color_matrix=bt709", "-pix_fmt", "yuv420p"]
    # without these tags players guess the colour space
    told_colors = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "iec61966-2-1"]
    coder = ["-c:v", "libx264", "-crf", "18", "-preset", "veryfast", "-movflags", "+faststart", *told_colors]
    command = [program, "-y", "-loglevel", "error", *source, *even, *coder, "-f", "mp4", os.fspath(path)]
    with tempfile.TemporaryFile() as told:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=told) as process:
            assert process.stdin is not None
            try:
                process.stdin.write(image.tobytes())
                for frame in pictures:
                    after = checked_picture(frame, colors_only=True)
                    if after.shape != image.shape:
                        raise ValueError(f"a frame has shape {after.shape}, the first one {image.shape}")
                    process.stdin.write(after.tobytes())
                process.stdin.close()
            except BrokenPipeError:
                pass  # ffmpeg ended early; its error output has the reason
            except BaseException:
                process.kill()
                raise
        told.seek(0)
        if process.returncode:
            reason = " ".join(told.read().decode(errors="replace").split())
            raise SceneError(f"ffmpeg ended with status {process.returncode}: {reason:.300}", file=os.fspath(path))


def find_ffmpeg() -> str:
    """The program; raises with instructions if there is none."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg

        brought: str = imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise ImportError(_MISSING) from None
    return brought
