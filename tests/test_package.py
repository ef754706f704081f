"""The package as users meet it: public names, quick imports, the README's example, metadata that agrees."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import poise

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules_after(code: str) -> set[str]:
    """Top-level packages that a fresh Python has loaded after some code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {"numba", "llvmlite", "mujoco", "typer", "rich", "pydantic", "yaml", "scipy", "matplotlib"}


def test_import_loads_nothing_heavy():
    loaded = modules_after("import poise")
    assert "poise" in loaded
    assert not loaded & (HEAVY | {"numpy"})


def test_building_a_scene_needs_no_compiler():
    loaded = modules_after("import poise; poise.Scene(bodies=[poise.Body('a')]); poise.box(1, 1, 1)")
    assert not loaded & HEAVY


def test_compiling_a_scene_needs_no_compiler():
    assert not modules_after("import poise; poise.Scene().compile()") & HEAVY


@pytest.mark.parametrize("name", poise.__all__)
def test_public_name_is_there(name):
    assert getattr(poise, name) is not None
    assert name in dir(poise)


def test_public_names_are_those_of_their_homes():
    for name, home in poise._HOMES.items():
        assert getattr(poise, name) is getattr(sys.modules[home], name)
        assert name in vars(poise), "a name is looked up once"


def test_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'elipsoid'; did you mean 'ellipsoid'\?"):
        _ = poise.elipsoid
    with pytest.raises(AttributeError, match=r"no attribute 'qqqq'$"):
        _ = poise.qqqq
    assert not hasattr(poise, "no_such_name")


def test_name_of_a_subpackage_is_answered_with_its_place():
    with pytest.raises(
        AttributeError, match=r"no attribute 'Simulation'; did you mean 'poise\.dynamics\.Simulation'\?"
    ):
        _ = poise.Simulation
    with pytest.raises(AttributeError, match=r"did you mean 'poise\.view\.line_chart'\?"):
        _ = poise.line_chart


def test_private_names_are_not_searched_for():
    assert not modules_after("import poise; hasattr(poise, '_ipython_display_')") & HEAVY


def test_completion_shows_only_what_is_for_users():
    assert {name for name in dir(poise) if not name.startswith("__")} == set(poise.__all__) - {"__version__"}


def test_asking_for_an_unknown_name_loads_nothing_heavy():
    """`hasattr` is asked by many tools; the compiler takes seconds to load."""
    assert not modules_after("import poise; assert not hasattr(poise, 'forward_dynamcs')") & (HEAVY | {"numpy"})


def test_names_of_packages_are_read_as_they_are():
    for package in poise._PACKAGES:
        assert poise._offered(package) == getattr(poise, package).__all__


def test_import_of_unknown_name_is_an_import_error():
    with pytest.raises(ImportError, match="nonsense"):
        exec("from poise import nonsense")


def test_editors_and_python_see_the_same_names():
    """The TYPE_CHECKING block, `__all__` and the lookup agree."""
    tree = ast.parse(Path(poise.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    looked_up = poise._HOMES | dict.fromkeys(poise._PACKAGES, "poise")
    assert typed == looked_up
    assert set(poise.__all__) == set(looked_up) | {"__version__"}
    assert len(poise.__all__) == len(set(poise.__all__))


def public_things():
    """Every class and function that the package and its public packages offer by name."""
    for home in (poise, *(getattr(poise, name) for name in poise._PACKAGES)):
        for name in getattr(home, "__all__", ()):
            thing = getattr(home, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{home.__name__}.{name}", thing


def lacks(thing):
    """What a public class or function does not say of itself."""
    if not inspect.getdoc(thing):
        yield "docstring"
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        if signature.return_annotation is signature.empty:
            yield "type of result"
        yield from (p.name for p in signature.parameters.values() if p.annotation is p.empty)


def test_public_things_are_documented_and_typed():
    """Kernels are typed by their compiler; what users call has hints all the same."""
    missing = {name: list(lacks(thing)) for name, thing in public_things()}
    assert len(missing) > 20
    assert {name: what for name, what in missing.items() if what} == {}


def test_public_functions_and_the_first_classes_have_examples_that_run():
    """Examples are run with the tests of their modules; every function has one, and every class of `poise` itself."""
    bare = [
        name
        for name, thing in public_things()
        if (inspect.isfunction(thing) or name.count(".") == 1) and ">>> " not in inspect.getdoc(thing)
    ]
    assert bare == []


def test_types_travel_with_the_package():
    assert (Path(poise.__file__).parent / "py.typed").is_file()


def test_readme_examples_run():
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert examples
    for example in examples:
        done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told = re.search(r"the ground holds (\d+) N after 5 s\n$", done.stdout)
        assert told, done.stdout
        assert abs(int(told[1]) - 70 * 9.81) < 3  # at rest, to a few times the tolerance of the solver


def test_readme_links_lead_somewhere():
    for page in ("README.md", "CONTRIBUTING.md", "docs/index.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
            assert target.startswith("https://") or ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_version_is_in_the_form_that_the_changelog_promises():
    assert re.fullmatch(r"\d+\.\d+\.\d+", poise.__version__)


def test_core_dependencies_are_few():
    names = {re.match(r"[\w-]+", line).group() for line in PYPROJECT["project"]["dependencies"]}
    assert names == {"numpy", "numba", "pydantic", "pyyaml", "typer", "rich"}


def test_every_package_has_its_place_in_the_layers():
    """A new package that no contract knows would be free to import anything."""
    layers = next(c for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    known = {layer.strip("()") for layer in layers}
    packages = {path.parent.name for path in (ROOT / "src" / "poise").glob("*/*.py")}
    assert packages <= known


def test_every_folder_with_code_is_a_package():
    """Without `__init__.py` a folder is invisible to the layer check."""
    folders = {path.parent for path in (ROOT / "src" / "poise").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []
