#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# v2.sh COMMAND...: run COMMAND where /sys/fs/cgroup is cgroup v2 alone. To be called in a mount namespace of its own.
# On a machine with v1 hierarchies LXC would otherwise take those, whose device rules know nothing of the cgroup2 keys.
set -e
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
exec "$@"
