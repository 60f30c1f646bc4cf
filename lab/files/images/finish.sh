#!/bin/sh
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# finish.sh ROOT: the last hook. ansible.builtin.apt takes the lists' age from their folder: empty ones must not look fresh.
# (mmdebstrap's own removal of the lists comes later and would touch the folder: it is switched off.)
set -eu
rm -rf "$1"/var/lib/apt/lists/*
touch -d @0 "$1/var/lib/apt/lists"
