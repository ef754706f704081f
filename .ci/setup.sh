# Sourced by ./demo and ./test: goes to the root of the checkout and makes .venv ready. Arguments: the extras needed.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# Whether a command is a Python 3.11 to 3.13 that can make environments (uv makes up for a missing ensurepip).
suits() {
    "$1" -c '
import sys, venv
from importlib.util import find_spec
from shutil import which
sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 13) and (find_spec("ensurepip") or which("uv"))))
' > /dev/null 2>&1
}

# Whether a command is a Python 3.11 to 3.13 at all.
runs() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' > /dev/null 2>&1
}

# Python 3.13 comes last: not every package that the tests compare with has wheels for it.
find_python() {
    local candidate bare=""
    for candidate in ${POISE_PYTHON:-python3 python3.12 python3.11 python3.13 python}; do
        if suits "$candidate"; then echo "$candidate"; return 0; fi
        if [ -z "$bare" ] && runs "$candidate"; then bare=$candidate; fi
    done
    candidate=$(uv python find '>=3.11,<3.14' 2> /dev/null) && suits "$candidate" && { echo "$candidate"; return 0; }
    if [ -n "$bare" ]; then
        echo "poise: $(command -v "$bare") lacks the modules venv and ensurepip: install them (Debian, Ubuntu: apt install python3-venv)" >&2
    elif [ -n "${POISE_PYTHON:-}" ]; then
        echo "poise: POISE_PYTHON=$POISE_PYTHON is not a Python 3.11 to 3.13 that runs" >&2
    else
        local have
        have=$(python3 --version 2> /dev/null)
        echo "poise: no Python 3.11, 3.12 or 3.13 found (python3 is: ${have:-none}): install one from python.org or your system" >&2
    fi
    return 1
}

python=$(find_python) || exit 1
"$python" .ci/environment.py "$@" || exit $?
