#!/bin/bash -eu
# setup.sh PYTHON LINK: the venv (cached by the content of requirements-dev.txt), linked into the checkout, and the collection's own link.
python=$1 link=$2
[ -x "$python" ] || { echo "setup: no Python at $python; install python3 and python3-venv" >&2; exit 1; }
# What the tools and the tests call. On a machine that has them this is one look.
needed="gcc git gpg libc6-dev openssh-client python3-venv rsync"
missing=
for package in $needed; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] || { echo "setup: not installed:$missing; run it as root once, or install them" >&2; exit 1; }
    echo "setup: installing$missing"
    # shellcheck disable=SC2086
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends $missing >/dev/null
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
