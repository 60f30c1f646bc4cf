#!/bin/bash -eu
# ansible-test sanity over a copy of the tree, with no container.
# - ansible-test refuses a linked path, and finds nothing to test below a folder that git ignores: hence a copy with a git of its own.
# - It makes its own venvs, and would fetch pip's bootstrap from outside for each: a file in its cache stands in for it.
# - It succeeds when it tests nothing: hence the count at the end.
python=3.11
home=$GPUSERVE_CACHE/sanity-$("$PWD/.build/venv/bin/python" -c 'import ansible.release as r; print(r.__version__)')
mkdir -p "$home/.ansible/test/cache"
for version in 24_2 23_1_2; do
    cat >"$home/.ansible/test/cache/get_pip_$version.py" <<'PY'
"""Stands in for pip's bootstrap script: the same arguments, with the pip that Python itself carries."""
import ensurepip
import subprocess
import sys

ensurepip.bootstrap(default_pip=True)
# --no-setuptools and --no-wheel are the bootstrap script's own.
wanted = [argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "pip", "install", *wanted])
PY
done
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
copy=$top/ansible_collections/gpuserve/sglang
mkdir -p "$copy"
# Tests, the lab and the scenarios are no part of the collection that users install.
git ls-files -z --cached --others --exclude-standard -- . ':!tests' ':!lab' ':!molecule' ':!scripts' ':!benchmarks' |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --null --files-from=- -cf - | tar -xf - -C "$copy"
git -C "$copy" init -q
git -C "$copy" add -A
log=$top/log
(cd "$copy" && HOME=$home ansible-test sanity --local --python "$python" --color no -v) >"$log" 2>&1 && status=0 || status=$?
if [ "$status" != 0 ]; then
    # A failed test names its errors; anything else is told by the end of the log.
    grep -E '^(Running sanity test|ERROR|FATAL)' "$log" | grep -B1 -E '^(ERROR|FATAL)' || tail -40 "$log"
    exit "$status"
fi
count=$(grep -c '^Running sanity test' "$log" || true)
[ "$count" -ge 20 ] || { echo "sanity: only $count tests ran, 20 or more were expected" >&2; exit 1; }
echo "sanity: $count tests, no error"
