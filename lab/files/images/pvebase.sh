#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# pvebase.sh ROOT: what the image `pvebase` has besides that of `base`. Called by mmdebstrap.
set -eu
root=$1
# Guests are pve-guests.service's to start, their bridge is vmbr0.
chroot "$root" systemctl --quiet mask lxc.service lxc-net.service lxc-monitord.service
# This host shares its kernel with the machine that it runs on: nothing here may set the machine's devices or parameters.
chroot "$root" systemctl --quiet mask systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service systemd-sysctl.service
# The ids of unprivileged guests, as Proxmox VE hands them out.
for file in subuid subgid; do echo root:100000:65536 > "$root/etc/$file"; done
