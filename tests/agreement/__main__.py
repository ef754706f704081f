"""Write docs/agreement.md: `python -m tests.agreement`, in the repository's root."""

from __future__ import annotations

import sys
from pathlib import Path

from .runs import MORE_STEPS, Cell
from .table import Hole, disagreements, look, text_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agreement.md"


def main() -> int:
    """All cells at many steps; whether all agree."""
    wrong: list[str] = []

    def look_at(kind: str, feature: str) -> Cell | Hole:
        found = look(kind, feature, MORE_STEPS)
        print(f"{kind}, {feature}: {found.why if isinstance(found, Hole) else 'done'}", file=sys.stderr, flush=True)
        if isinstance(found, Cell):
            wrong.extend(f"{kind}, {feature}: {line}" for line in disagreements(found))
        return found

    PAGE.write_text(text_of(look_at), encoding="utf-8")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
