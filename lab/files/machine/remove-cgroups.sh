#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# remove-cgroups.sh NAME: remove what LXC left of the container NAME's cgroups. To be called under v2.sh.
# lxc.pivot is where LXC parks a process while it removes others; it stays, empty, and is refused while in use.
for group in /sys/fs/cgroup/lxc.payload."$1" /sys/fs/cgroup/lxc.payload."$1"-* /sys/fs/cgroup/lxc.monitor."$1" \
    /sys/fs/cgroup/lxc.monitor."$1"-*; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} +
done
rmdir /sys/fs/cgroup/lxc.pivot 2>/dev/null || true
