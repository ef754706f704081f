"""Elements and attributes of a URDF file that the reader ignores."""

from __future__ import annotations

from collections import Counter

from poise.io.urdf_reader import UrdfReader
from poise.io.xml_lines import Element

#: elements and attributes that the reader knows inside others
_SIZES = {"radius", "length"}
_KNOWN: dict[str, tuple[set[str], set[str]]] = {
    "robot": ({"link", "joint", "material"}, {"name", "version"}),
    "link": ({"inertial", "visual", "collision"}, {"name"}),
    "joint": ({"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"}, {"name", "type"}),
    "inertial": ({"origin", "mass", "inertia"}, set()),
    "visual": ({"origin", "geometry", "material"}, {"name"}),
    "collision": ({"origin", "geometry"}, {"name"}),
    "geometry": ({"box", "sphere", "cylinder", "capsule", "mesh"}, set()),
    "material": ({"color", "texture"}, {"name"}),
    "origin": (set(), {"xyz", "rpy"}),
    "mass": (set(), {"value"}),
    "inertia": (set(), {"ixx", "iyy", "izz", "ixy", "ixz", "iyz"}),
    "box": (set(), {"size"}),
    "sphere": (set(), {"radius"}),
    "cylinder": (set(), _SIZES),
    "capsule": (set(), _SIZES),
    "mesh": (set(), {"filename", "scale"}),
    "color": (set(), {"rgba"}),
    "texture": (set(), {"filename"}),
    "parent": (set(), {"link"}),
    "child": (set(), {"link"}),
    "axis": (set(), {"xyz"}),
    "limit": (set(), {"lower", "upper", "effort", "velocity"}),
    "dynamics": (set(), {"damping", "friction"}),
    "mimic": (set(), {"joint", "multiplier", "offset"}),
}
#: elements of which several may stand in one
_REPEATED = {"robot": {"link", "joint", "material"}, "link": {"visual", "collision"}}


def list_ignored(robot: Element, reader: UrdfReader) -> None:
    """Count elements and attributes that nothing reads, and elements that repeat one that is read."""
    unknown: Counter[str] = Counter()
    attributes: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    waiting = [robot]
    while waiting:
        owner = waiting.pop()
        children, names = _KNOWN[owner.name]
        attributes.update(
            f"{name} of <{owner.name}>"
            for name in owner.attributes
            if name not in names and name.partition(":")[0] != "xmlns"
        )
        read: list[Element] = []
        for child in owner.children:
            if child.name not in children:
                # a shape that is unknown is listed with its link
                if owner.name != "geometry" or child is not owner.children[0]:
                    unknown[f"<{child.tag}>{_inside(owner)}"] += 1
            elif child.name not in _REPEATED.get(owner.name, ()) and _has_one(read, child, owner):
                repeated[f"<{child.tag}>{_inside(owner)}"] += 1
            else:
                read.append(child)
        waiting += reversed(read)
    for fate, counts in (
        ("elements ignored", unknown),
        ("attributes ignored", attributes),
        ("elements ignored, as only the first one counts", repeated),
    ):
        for item, count in counts.items():
            reader.ignore(fate, f"{count} {item}")


def _has_one(read: list[Element], child: Element, owner: Element) -> bool:
    """Whether an element was read that leaves no room for another one; a geometry has one shape."""
    return bool(read) if owner.name == "geometry" else any(one.name == child.name for one in read)


def _inside(owner: Element) -> str:
    return "" if owner.name == "robot" else f" in {owner.name}s" if owner.name != "geometry" else " in geometries"
