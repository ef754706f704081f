"""Every Python example of the documents runs, and every link to a file of the repository leads somewhere."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS = (
    "broadphase",
    "narrowphase",
    "continuous collision",
    "time of impact",
    "MPPI",
    "Baumgarte",
    "post-stabilization",
    "Delassus",
    "constraint islands",
    "loop joint",
    "domain randomization",
    "warm start",
    "footskate",
    "retargeting",
)
"""Words of the field that a reader searches for."""
SOURCES = sorted((ROOT / "src" / "poise").glob("**/*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *(ROOT / "benchmarks").glob("*.md")])


def examples(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "example"}
    for number, source in enumerate(examples(page)):
        exec(compile(source, f"{page.name}, example {number + 1}", "exec"), scope)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


@pytest.mark.parametrize("term", TERMS)
def test_the_glossary_defines_a_term(term: str) -> None:
    heads = re.findall(r"^\| \*\*(.+?)\*\*", GLOSSARY, flags=re.MULTILINE)
    assert any(term.lower() in head.lower() for head in heads)


@pytest.mark.parametrize("term", TERMS)
def test_a_module_says_a_term(term: str) -> None:
    """Someone who searches the source for a word of the field finds the module that does it."""
    docstrings = (re.match(r'"""(.*?)"""', path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in SOURCES)
    assert any(term.lower() in " ".join(found[1].split()).lower() for found in docstrings if found)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(poise\.[\w.]+)", GLOSSARY))))
def test_the_glossary_names_what_exists(name: str) -> None:
    pkgutil.resolve_name(name)


def test_rows_of_the_glossary_are_whole() -> None:
    rows = [line for line in GLOSSARY.splitlines() if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert all(cell.strip() for row in rows for cell in row.strip("|").split("|"))
