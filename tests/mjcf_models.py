"""Small MJCF models in a few words, for tests."""

from __future__ import annotations

from poise.io.mjcf import load_mjcf


def model(body: str = "", **sections: str) -> str:
    """A model with a world body and other sections, such as actuator="<motor .../>"."""
    extra = "".join(f"<{name}>{content}</{name}>" for name, content in sections.items() if name != "head")
    return f"<mujoco>{sections.get('head', '')}<worldbody>{body}</worldbody>{extra}</mujoco>"


GEOM = "<geom size='0.1'/>"


def limb(content: str = GEOM, joint: str = "<joint name='j'/>") -> str:
    return f"<body name='limb' pos='0 0 1'>{joint}{content}</body>"


def limb_of(scene):
    return next(body for body in scene.bodies if body.name == "limb")


def shape(content: str):
    (only,) = limb_of(load_mjcf(model(limb(content)))).shapes
    return only
