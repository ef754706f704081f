"""Scenes and compiled models: description, checks, mass properties, model and state."""

from poise.model.build import BodyHandle, CharacterHandle
from poise.model.compile import compile_scene
from poise.model.contact_pairs import ContactPair
from poise.model.errors import Problem, SceneError
from poise.model.joints import JOINTS, JointKind, Primitive
from poise.model.massprops import MassProperties, body_mass_properties, shape_mass_properties
from poise.model.model import Model
from poise.model.reroot import rerooted
from poise.model.scene import Actuator, Body, Character, Equality, Inertia, Joint, Keyframe, Scene
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Material, Plane, Shape, Sphere
from poise.model.single_dof_chains import GimbalLock, from_chain, single_dof_chain, to_chain
from poise.model.skins import Bone, Skin
from poise.model.state import State
from poise.model.validate import validate

__all__ = [
    "JOINTS",
    "Actuator",
    "Body",
    "BodyHandle",
    "Bone",
    "Box",
    "Capsule",
    "Character",
    "CharacterHandle",
    "ContactPair",
    "ConvexMesh",
    "Cylinder",
    "Ellipsoid",
    "Equality",
    "GimbalLock",
    "Inertia",
    "Joint",
    "JointKind",
    "Keyframe",
    "MassProperties",
    "Material",
    "Model",
    "Plane",
    "Primitive",
    "Problem",
    "Scene",
    "SceneError",
    "Shape",
    "Skin",
    "Sphere",
    "State",
    "body_mass_properties",
    "compile_scene",
    "from_chain",
    "rerooted",
    "shape_mass_properties",
    "single_dof_chain",
    "to_chain",
    "validate",
]
