#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# probe.sh FOLDER: what this kernel lets us do, tried for real in private namespaces. FOLDER is on the file system that
# will hold the labs. Prints "NAME ok" or "NAME no REASON" for each; leaves nothing behind.
set -u
folder=$1

try() {
    name=$1
    shift
    if said=$("$@" 2>&1); then echo "$name ok"; else echo "$name no $(echo "$said" | head -n 1)"; fi
}

cgroup2() { mount -t cgroup2 none "$folder/cgroup" && mkdir "$folder/cgroup/gpuserve-probe.$$" && rmdir "$folder/cgroup/gpuserve-probe.$$"; }
overlay() { mount -t overlay -o "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" none "$folder/merged" && : > "$folder/merged/file"; }
# A device that no driver answers: ENXIO says that it may be opened, EPERM that a device cgroup is in the way.
devices() {
    mount -t tmpfs none "$folder/dev" && mknod "$folder/dev/node" c 195 200 || return 1
    said=$({ : < "$folder/dev/node"; } 2>&1) && return 0
    case $said in *"No such device"*) return 0 ;; *) echo "$said"; return 1 ;; esac
}

mkdir -p "$folder/cgroup" "$folder/lower" "$folder/upper" "$folder/work" "$folder/merged" "$folder/dev"
try namespaces unshare --mount --pid --net --uts --ipc --cgroup --fork true
try cgroup2 cgroup2
try overlay overlay
try devices devices
