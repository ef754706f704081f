"""The text of BVH files: a tree of joints with channels, then one row of numbers for each frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poise.io.parse_floats import as_number, read_numbers
from poise.model.errors import SceneError, did_you_mean

Floats = NDArray[np.float64]

CHANNELS = ("Xposition", "Yposition", "Zposition", "Xrotation", "Yrotation", "Zrotation")
_CHANNEL = {name.casefold(): name for name in CHANNELS}
_STATEMENTS = ("JOINT", "OFFSET", "CHANNELS", "End Site", "}")
_TOKEN = re.compile(r"[{}]|[^\s{}]+")
#: no length or angle of a motion is beyond this, in any unit
_LARGEST = 1e7
#: joints that have another name than in the file are noted one by one up to so many
_MOST_NOTES = 10


@dataclass(frozen=True)
class BvhJoint:
    """One joint as the file has it."""

    name: str
    parent: int
    """Index of the parent, −1 for the root."""
    offset: tuple[float, float, float]
    """From the parent, in the file's units and axes."""
    channels: tuple[str, ...]
    """Like `"Xposition"` and `"Zrotation"`, in the file's order."""


@dataclass(frozen=True, eq=False)
class BvhFile:
    """A BVH file as it stands: nothing is converted, degrees are degrees."""

    joints: tuple[BvhJoint, ...]
    tips: tuple[tuple[int, tuple[float, float, float]], ...]
    """(joint, offset) of each End Site."""
    frames: Floats
    """(frames, channels) the numbers of the MOTION section."""
    frame_time: float
    """s."""
    notes: tuple[str, ...] = ()
    """Corrections that the reader made."""


def parse_bvh(text: str, file: str | None = None, rate: float | None = None) -> BvhFile:
    r"""Read the text of a BVH file. `rate` (frames a second) overrides the file's. Raises SceneError with the line.

    >>> text = "HIERARCHY ROOT hip { OFFSET 0 0 0 CHANNELS 1 Xrotation End Site { OFFSET 0 1 0 } }"
    >>> parse_bvh(text + "\nMOTION\nFrames: 2\nFrame Time: 0.1\n10\n20").frames.tolist()
    [[10.0], [20.0]]
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not text.strip():
        raise SceneError("the file is empty", file=file)
    split = next((k for k, line in enumerate(lines) if line.strip().casefold() == "motion"), None)
    if split is None:
        raise SceneError('there is no line "MOTION", after which the frames follow', file=file, line=len(lines))
    header = _Header(lines[:split], file)
    header.read()
    motion = _Motion(lines, split + 1, sum(len(joint.channels) for joint in header.joints), file)
    frames, step = motion.read(rate)
    return BvhFile(tuple(header.joints), tuple(header.tips), frames, step, (*header.notes, *motion.notes))


@dataclass
class _Open:
    """A joint whose closing brace has not come yet."""

    name: str
    line: int
    index: int
    offset: tuple[float, float, float] | None = None
    channels: tuple[str, ...] | None = None


@dataclass
class _Header:
    """Reads the HIERARCHY section, statement by statement."""

    lines: Sequence[str]
    file: str | None
    joints: list[BvhJoint] = field(default_factory=list)
    tips: list[tuple[int, tuple[float, float, float]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = [
            (found[0], number, found.start(), found.end())
            for number, line in enumerate(self.lines, 1)
            for found in _TOKEN.finditer(line)
        ]
        self.at = 0
        self.open: list[_Open] = []
        self.taken: set[str] = set()
        self.copies: dict[str, int] = {}
        """How many joints there are of a name that the file gives."""
        self.renamed = 0

    def fail(self, message: str, line: int | None = None) -> SceneError:
        """An error at a line, by default that of the statement being read."""
        if line is None:
            last = self.tokens[min(self.at, len(self.tokens)) - 1][1] if self.tokens else 1
            line = last
        return SceneError(message, file=self.file, line=line)

    def next(self, wanted: str) -> tuple[str, int]:
        """The next token and its line."""
        if self.at >= len(self.tokens):
            raise self.fail(f"the HIERARCHY section ends where {wanted} should follow")
        text, line, _, _ = self.tokens[self.at]
        self.at += 1
        return text, line

    def expect(self, wanted: str) -> None:
        """Take a token that must be there."""
        found, line = self.next(f'"{wanted}"')
        if found.casefold() != wanted.casefold():
            raise self.fail(f'"{wanted}" should follow here, found "{found[:40]}"', line)

    def read(self) -> None:
        """All of the section."""
        self.expect("HIERARCHY")
        while self.at < len(self.tokens):
            word, line = self.next("a statement")
            self.statement(word, line)
        if self.open:
            last = self.open[-1]
            raise self.fail(f'joint "{last.name}" is not closed: a "}}" is missing', last.line)
        if self.renamed > _MOST_NOTES:
            self.notes.append(f"{self.renamed - _MOST_NOTES} more joints have other names as well.")
        if not self.joints:
            raise self.fail('there is no joint: "ROOT" and a name should follow HIERARCHY')

    def statement(self, word: str, line: int) -> None:
        """One statement, whose first word has been taken."""
        key = word.casefold()
        if key == "root" or (key == "joint" and not self.open):
            if self.joints:
                raise self.fail(f"a file has one root, found a second tree under {word}", line)
            self.begin(word, line)
        elif not self.open:
            raise self.fail(f'"ROOT" or "MOTION" should follow here, found "{word[:40]}"', line)
        elif key == "joint":
            self.begin(word, line)
        elif key == "end":
            self.end_site(line)
        elif key == "offset":
            if self.open[-1].offset is not None:
                raise self.fail(f'joint "{self.open[-1].name}" has a second OFFSET', line)
            self.open[-1].offset = self.offset(line)
            self.store()
        elif key == "channels":
            self.read_channels(line)
            self.store()
        elif key == "}":
            self.close()
        else:
            hint = did_you_mean(word, _STATEMENTS)
            raise self.fail(f'no statement begins with "{word[:40]}"{hint}', line)

    def begin(self, word: str, line: int) -> None:
        """ROOT or JOINT: a name, which may have spaces and colons, to the end of the line or a brace."""
        name = self.rest_of_line(line)
        if not name:
            raise self.fail(f"{word} should be followed by a name", line)
        self.expect("{")
        given, copies = name, self.copies.get(name, 1)
        while name in self.taken:
            copies += 1
            name = f"{given}.{copies}"
        if name != given:
            self.copies[given] = copies
            self.renamed += 1
            if self.renamed <= _MOST_NOTES:
                self.notes.append(f'another joint "{given}", on line {line}, is now "{name}".')
        self.taken.add(name)
        parent = self.open[-1].index if self.open else -1
        self.open.append(_Open(name, line, len(self.joints)))
        self.joints.append(BvhJoint(name, parent, (0.0, 0.0, 0.0), ()))

    def rest_of_line(self, line: int) -> str:
        """What stands on a line before a brace."""
        first = self.at
        while self.at < len(self.tokens) and self.tokens[self.at][1] == line and self.tokens[self.at][0] not in "{}":
            self.at += 1
        if self.at == first:
            return ""
        return self.lines[line - 1][self.tokens[first][2] : self.tokens[self.at - 1][3]]

    def offset(self, line: int) -> tuple[float, float, float]:
        """Three numbers."""
        x, y, z = (self.number(line, "OFFSET has three numbers") for _ in range(3))
        return x, y, z

    def number(self, line: int, rule: str) -> float:
        """One number that can be a length."""
        text, at = self.next("a number")
        value = as_number(text)
        if value is None or not abs(value) <= _LARGEST:
            raise self.fail(f'{rule}, found "{text[:40]}"', at if at else line)
        return value

    def read_channels(self, line: int) -> None:
        """A count and as many names, all different."""
        joint = self.open[-1]
        if joint.channels is not None:
            raise self.fail(f'joint "{joint.name}" has a second CHANNELS', line)
        text, at = self.next("the number of channels")
        if not text.isascii() or not text.isdigit() or len(text) > 6:
            raise self.fail(f'CHANNELS should be followed by how many there are, found "{text[:40]}"', at)
        names: list[str] = []
        for _ in range(int(text)):
            word, at = self.next(f"the name of channel {len(names) + 1} of {text}")
            if word.casefold() not in _CHANNEL:
                hint = did_you_mean(word, CHANNELS)
                raise self.fail(f'channel {len(names) + 1} of {text} is no channel, found "{word[:40]}"{hint}', at)
            if _CHANNEL[word.casefold()] in names:
                raise self.fail(f'joint "{joint.name}" has the channel {word} twice', at)
            names.append(_CHANNEL[word.casefold()])
        if self.at < len(self.tokens) and self.tokens[self.at][0].casefold() in _CHANNEL:
            raise self.fail(f'CHANNELS says {text}, and then names more: "{self.tokens[self.at][0]}"', at)
        joint.channels = tuple(names)

    def store(self) -> None:
        """What is known of the innermost joint."""
        now = self.open[-1]
        kept = self.joints[now.index]
        self.joints[now.index] = BvhJoint(
            kept.name, kept.parent, now.offset or kept.offset, now.channels or kept.channels
        )

    def end_site(self, line: int) -> None:
        """`End Site` with an offset in braces."""
        self.rest_of_line(line)
        self.expect("{")
        self.expect("OFFSET")
        self.tips.append((self.open[-1].index, self.offset(line)))
        self.expect("}")

    def close(self) -> None:
        """The end of a joint."""
        joint = self.open.pop()
        if joint.offset is None:
            raise self.fail(f'joint "{joint.name}" has no OFFSET', joint.line)


@dataclass
class _Motion:
    """Reads the MOTION section."""

    lines: Sequence[str]
    at: int
    """Index of the next line."""
    channels: int
    file: str | None
    notes: list[str] = field(default_factory=list)

    def fail(self, message: str, line: int) -> SceneError:
        """An error at a line (from 1)."""
        return SceneError(message, file=self.file, line=line)

    def setting(self, name: str, example: str) -> tuple[str, int]:
        """The text after `name:` on the next line that has any, and that line's number."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        line = self.at + 1
        words = r"\s+".join(name.split())
        found = re.match(rf"\s*{words}\s*:?\s*(.*)$", self.lines[self.at], re.I) if self.at < len(self.lines) else None
        if found is None:
            have = f', found "{self.lines[self.at].strip()[:40]}"' if self.at < len(self.lines) else ""
            raise self.fail(f'"{name}: {example}" should follow here{have}', min(line, len(self.lines)))
        self.at += 1
        return found[1].strip(), line

    def read(self, rate: float | None) -> tuple[Floats, float]:
        """Numbers (frames, channels) and the time of a frame (s)."""
        text, line = self.setting("Frames", "120")
        if not text.isascii() or not text.isdigit():
            raise self.fail(f'Frames should be a whole number, found "{text[:40]}"', line)
        said = text.lstrip("0") or "0"
        text, line = self.setting("Frame Time", "0.008333")
        step = as_number(text)
        if rate is not None:
            step = 1.0 / rate
        elif step is None or not 1e-6 <= step <= 1e4:
            raise self.fail(f'Frame Time should be seconds, found "{text[:40]}"; rate= overrides it', line)
        if not self.channels:
            raise self.fail("no joint has CHANNELS, so that nothing moves", line)
        frames = self.rows()
        if str(len(frames)) != said:
            self.notes.append(f"the file says {said[:20]} frames and has {len(frames)}.")
        return frames, float(step or 0.0)

    def rows(self) -> Floats:
        """All frames. A frame may run over several lines, but starts on a new one."""
        numbers, counts = read_numbers("\n".join(self.lines[self.at :]))
        if not len(numbers):
            raise self.fail("no frames follow", len(self.lines))
        good = np.abs(numbers) <= _LARGEST
        if not good.all():
            place = int(np.argmin(good))
            line = int(np.searchsorted(counts, place, side="right"))
            word = self.lines[self.at + line].split()[place - (int(counts[line - 1]) if line else 0)]
            raise self.fail(f'every frame is {self.channels} numbers, found "{word[:40]}"', self.at + 1 + line)
        whole = np.unique(counts[counts % self.channels == 0])
        if np.count_nonzero(whole) * self.channels != len(numbers):
            raise self.uneven(counts)
        return numbers.reshape(-1, self.channels)

    def uneven(self, counts: NDArray[np.intp]) -> SceneError:
        """Where a frame has too many or too few numbers."""
        begin = 0
        for k, end in enumerate(counts.tolist()):
            if end - begin == self.channels:
                begin = end
            elif end - begin > self.channels:
                before = int(counts[k - 1]) if k else 0
                whole = k if before == begin else int(np.searchsorted(counts, begin, side="right"))
                found = end - begin if whole == k else before - begin
                return self.fail(_count_message(self.channels, found), self.at + 1 + whole)
        line = self.at + 1 + int(np.searchsorted(counts, begin, side="right"))
        return self.fail(_count_message(self.channels, int(counts[-1]) - begin), line)


def _count_message(wanted: int, found: int) -> str:
    return f"the channels ask for {wanted} numbers a frame, found {found}"


def format_bvh(bvh: BvhFile, digits: int = 6) -> str:
    """The text of a BVH file, with `digits` after the point.

    >>> joint = BvhJoint("hip", -1, (0.0, 1.0, 0.0), ("Xrotation",))
    >>> format_bvh(BvhFile((joint,), (), np.array([[90.0]]), 0.1), 1).split()[-6:]
    ['Frames:', '1', 'Frame', 'Time:', '0.1', '90.0']
    """
    out = ["HIERARCHY"]
    children: dict[int, list[int]] = {}
    for index, joint in enumerate(bvh.joints):
        children.setdefault(joint.parent, []).append(index)
    # a stack instead of recursion: chains of bones may be long
    todo: list[tuple[int, int]] = [(0, 0)]
    ends = np.cumsum([0, *(len(joint.channels) for joint in bvh.joints)])
    order: list[int] = []
    while todo:
        index, depth = todo.pop()
        tabs = "\t" * depth
        if index < 0:
            out.append(tabs + "}")
            continue
        # numbers come as the tree is written, branch by branch, in whatever order the joints are
        order += range(ends[index], ends[index + 1])
        joint = bvh.joints[index]
        out += [f"{tabs}{'JOINT' if depth else 'ROOT'} {joint.name}", tabs + "{"]
        out.append(f"{tabs}\tOFFSET {_plain(joint.offset, digits)}")
        if joint.channels:
            out.append(f"{tabs}\tCHANNELS {len(joint.channels)} {' '.join(joint.channels)}")
        for owner, offset in bvh.tips:
            if owner == index:
                out += [f"{tabs}\tEnd Site", tabs + "\t{", f"{tabs}\t\tOFFSET {_plain(offset, digits)}", tabs + "\t}"]
        todo.append((-1, depth))
        todo += [(child, depth + 1) for child in reversed(children.get(index, []))]
    out += ["MOTION", f"Frames: {len(bvh.frames)}", f"Frame Time: {bvh.frame_time:.9g}"]
    row = " ".join([f"%.{digits}f"] * bvh.frames.shape[1])
    out += [row % tuple(frame) for frame in bvh.frames[:, order].tolist()]
    return "\n".join(out) + "\n"


def _plain(numbers: Sequence[float], digits: int) -> str:
    return " ".join(f"{number:.{digits}f}" for number in numbers)
