#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# remove-cgroups.sh NAME: remove what LXC left of the container NAME's cgroups. To be called under v2.sh.
root=/sys/fs/cgroup
# Processes are left only where LXC could not stop the container: its state folder was removed by hand, say.
for kill in "$root/lxc.payload.$1/cgroup.kill" "$root/lxc.monitor.$1/cgroup.kill"; do
    [ ! -e "$kill" ] || echo 1 > "$kill"
done
tries=0
while [ -d "$root/lxc.payload.$1" ] || [ -d "$root/lxc.monitor.$1" ]; do
    # A process that was just killed may hold its cgroup for a moment.
    [ $tries -eq 0 ] || sleep 0.1
    [ $tries -lt 50 ] || { echo "the cgroups of $1 are still in use" >&2; exit 1; }
    tries=$((tries + 1))
    find "$root/lxc.payload.$1" "$root/lxc.monitor.$1" -depth -type d -exec rmdir {} + 2>/dev/null
done
# Where LXC parks a process while it removes others; it stays, empty, and is refused while in use.
rmdir $root/lxc.pivot 2>/dev/null || true
