#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# base.sh ROOT: what the image `base` has besides Debian's packages. Called by mmdebstrap, with CA_BUNDLE in the environment.
set -eu
root=$1
# Each lab has a host name, host keys and a resolver of its own.
rm -f "$root/etc/hostname" "$root"/etc/ssh/ssh_host_*
# Nothing may take apt's lock behind a test's back.
chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer
# Trust what this machine trusts: its mirrors may present a certificate of a local authority.
if [ -n "$CA_BUNDLE" ]; then
    cp "$CA_BUNDLE" "$root/etc/ssl/certs/ca-certificates.crt"
    # Pip brings a bundle of its own otherwise.
    printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' > "$root/etc/pip.conf"
fi
