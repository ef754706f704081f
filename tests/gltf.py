"""Reading glTF for tests: chunks, accessors, where nodes are at a key; and Khronos's validator where it is found."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

_TYPES = {5126: "<f4", 5123: "<u2", 5125: "<u4"}
_WIDTH = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_SCRIPT = """
const validator = require(process.argv[1]);
const bytes = new Uint8Array(require('fs').readFileSync(process.argv[2]));
validator.validateBytes(bytes).then(report => console.log(JSON.stringify(report)));
"""


def find_validator() -> tuple[str, str] | None:
    """The program node and the folder of the package gltf-validator, None where one of them is missing."""
    node = shutil.which("node")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    told = os.environ.get("POISE_GLTF_VALIDATOR")
    package = Path(told) if told else cache / "poise" / "npm" / "node_modules" / "gltf-validator"
    return (node, str(package)) if node and (package / "package.json").is_file() else None


def validate(file: Path) -> dict[str, Any]:
    """What Khronos's validator says of a file."""
    found = find_validator()
    assert found is not None
    node, package = found
    done = subprocess.run([node, "-e", _SCRIPT, package, str(file)], capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


class Glb:
    """A file taken apart by the rules of the specification."""

    def __init__(self, file: Path) -> None:
        data = file.read_bytes()
        magic, version, length = struct.unpack_from("<4sII", data)
        assert (magic, version, length) == (b"glTF", 2, len(data))
        self.binary, at = b"", 12
        while at < length:
            size, kind = struct.unpack_from("<I4s", data, at)
            assert size % 4 == 0
            chunk = data[at + 8 : at + 8 + size]
            if kind == b"JSON":
                self.json = json.loads(chunk)
            else:
                assert kind == b"BIN\0"
                self.binary = chunk
            at += 8 + size
        assert at == length
        self.nodes = self.json["nodes"]
        self.names = [node["name"] for node in self.nodes]

    def array(self, number: int) -> np.ndarray:
        """Numbers of an accessor, after a look at its bounds."""
        accessor = self.json["accessors"][number]
        view = self.json["bufferViews"][accessor["bufferView"]]
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] + view["byteLength"] <= len(self.binary)
        width = _WIDTH[accessor["type"]]
        flat = np.frombuffer(
            self.binary, _TYPES[accessor["componentType"]], accessor["count"] * width, view["byteOffset"]
        )
        values = flat.reshape(-1, width)
        if "min" in accessor:
            assert np.array_equal(values.min(axis=0), np.float32(accessor["min"]))
            assert np.array_equal(values.max(axis=0), np.float32(accessor["max"]))
        return values

    def poses(self, key: int) -> dict[str, np.ndarray]:
        """(4, 4) world transform of each node by its name, at a key of the animation."""
        local = [dict(node) for node in self.nodes]
        for animation in self.json.get("animations", []):
            for channel in animation["channels"]:
                output = animation["samplers"][channel["sampler"]]["output"]
                local[channel["target"]["node"]][channel["target"]["path"]] = self.array(output)[key]
        found: dict[str, np.ndarray] = {}

        def walk(number: int, above: np.ndarray) -> None:
            node = local[number]
            here = above @ _matrix(node.get("translation", (0, 0, 0)), node.get("rotation", (0, 0, 0, 1)))
            found[node["name"]] = here
            for child in node.get("children", []):
                walk(child, here)

        for number in self.json["scenes"][self.json["scene"]]["nodes"]:
            walk(number, np.eye(4))
        return found


def _matrix(translation: Any, rotation: Any) -> np.ndarray:
    x, y, z, w = (float(part) for part in rotation)
    matrix = np.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    matrix[:3, 3] = translation
    return matrix
