#!/bin/sh
# The running lab as an inventory. Reached through a link too (molecule's), so the checkout is found from the real path.
cd "$(dirname "$(readlink -f "$0")")/../.." && exec /usr/bin/python3 -m lab inventory --list
