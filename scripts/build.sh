#!/bin/bash -eu
# build.sh DIST: build the collection, look into the tarball, and install it from there as a user would, with no network.
dist=$1
rm -rf "$dist"
mkdir -p "$dist"
ansible-galaxy collection build --force --output-path "$dist" >/dev/null
tarball=$(ls "$dist"/*.tar.gz)
# Whatever is only for those who work on the tree must not reach a user.
if strays=$(tar -tzf "$tarball" | grep -E '^(\.|tests/|lab/|molecule/|scripts/|Makefile)'); then
    echo "build: these do not belong into the collection, see build_ignore in galaxy.yml: $strays" >&2
    exit 1
fi
for needed in playbooks/k26_eagle3.yml playbooks/vars/profiles/k26_eagle3.yml plugins/modules/sglang_probe.py inventories/ct200/hosts.yml meta/runtime.yml; do
    tar -tzf "$tarball" | grep -qx "$needed" || { echo "build: $needed is missing in $tarball" >&2; exit 1; }
done
ANSIBLE_COLLECTIONS_PATH=$dist/installed ansible-galaxy collection install --offline --no-deps -p "$dist/installed" "$tarball" >/dev/null
# Without the checkout's own settings: only what was installed may resolve.
(cd "$dist" && touch empty.cfg && ANSIBLE_CONFIG=empty.cfg ANSIBLE_COLLECTIONS_PATH=installed \
    ansible-playbook --syntax-check -i installed/ansible_collections/gpuserve/sglang/inventories/ct200 \
    gpuserve.sglang.k26_eagle3 >/dev/null)
echo "build: $(basename "$tarball"), $(tar -tzf "$tarball" | wc -l) files, installs and resolves"
