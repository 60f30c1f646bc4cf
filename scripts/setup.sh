#!/bin/bash -eu
# setup.sh PYTHON LINK: the venv (cached by the content of requirements-dev.txt), linked into the checkout, and the collection's own link.
python=$1 link=$2
[ -x "$python" ] || { echo "setup: no Python at $python; install python3 and python3-venv" >&2; exit 1; }
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "setup: $python has no venv support; install python3-venv" >&2; exit 1; }
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends python3-venv
fi
key=$({ cat requirements-dev.txt; "$python" -VV; } | sha256sum | cut -c1-16)
venv=$GPUSERVE_CACHE/venv-$key
if [ ! -e "$venv/.complete" ]; then
    echo "setup: making the tools' venv in $venv"
    mkdir -p "$GPUSERVE_CACHE"
    # Two checkouts may be set up at once; the second one finds the first one's work.
    exec 9>"$venv.lock"
    flock 9
    if [ ! -e "$venv/.complete" ]; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install -qq --disable-pip-version-check -r requirements-dev.txt
        touch "$venv/.complete"
    fi
fi
mkdir -p "$(dirname "$link")"
ln -sfnT "$venv" .build/venv
ln -sfnT ../../../.. "$link"
