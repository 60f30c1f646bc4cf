# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files: what is not ours keeps its bytes, whatever Proxmox VE or a person has done to the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.config import (
    cgroup_version,
    covering_rule,
    dev_value,
    edit,
    is_unprivileged,
    join_lines,
    live_options,
    pending_conflicts,
    split_lines,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Device, LxcError
from hypothesis import given
from hypothesis import strategies as st

MAJORS = {"mem": 1, "drm": 226, "nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 511, "nvidia-caps": 508, "hidraw": 240}
MOVED = {**MAJORS, "nvidia-uvm": 508, "nvidia-caps": 507}


def nodes(*gpus: int, uvm: int = 511, **owner: object) -> list[Device]:
    """The nodes of these GPUs and the three that each CUDA program needs."""
    numbers = [(f"/dev/nvidia{gpu}", 195, gpu) for gpu in gpus]
    numbers += [("/dev/nvidiactl", 195, 255), ("/dev/nvidia-uvm", uvm, 0), ("/dev/nvidia-uvm-tools", uvm, 1)]
    return [Device(path, major, minor, **owner) for path, major, minor in numbers]  # type: ignore[arg-type]


def change(text: str, devices: list[Device], style: str, backend: str = "proxmox", majors: object = None) -> str:
    return edit(
        text,
        devices,
        backend=backend,
        style=style,
        cgroup="v2",
        majors=MAJORS if majors is None else majors,  # type: ignore[arg-type]
    ).text


def as_proxmox_writes(text: str) -> str:
    """A file after Proxmox VE has written it: PVE::LXC::Config, parse_pct_config and write_pct_config."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in re.split(r"\n", text):
        header = re.fullmatch(r"\[(pve:pending|[a-z][a-z0-9_\-]+)\]\s*", line, re.IGNORECASE)
        if header:
            sections.append((header[1], []))
        elif line.strip():
            sections[-1][1].append(line)
    head, *rest = sections
    pending = [section for section in rest if section[0].lower() == "pve:pending" and section[1]]
    snapshots = sorted(section for section in rest if section[0].lower() != "pve:pending")
    written = ""
    for name, lines in [head, *pending, *snapshots]:
        comments = [line.rstrip("\r") for line in lines if line.startswith("#")]
        raw = [re.fullmatch(r"(lxc\.[a-z0-9_\-.]+)(?::|\s*=)\s*(.*?)\s*", line) for line in lines]
        options = {
            match[1]: match[2]
            for match in (re.fullmatch(r"([a-z][a-z_]*\d*):\s*(.+?)\s*", line) for line in lines)
            if match
        }
        written += f"\n[{name}]\n" if name else ""
        written += "".join(f"{comment}\n" for comment in comments)
        written += "".join(f"{key}: {value}\n" for key, value in sorted(options.items()))
        pairs = [(match[1], match[2]) for match in raw if match]
        pairs.sort(key=lambda pair: pair[0] != "lxc.environment.runtime")
        written += "".join(f"{key}: {value}\n" for key, value in pairs)
    return written


PLAIN = """arch: amd64
cores: 32
features: nesting=1
hostname: ct200
memory: 262144
net0: name=eth0,bridge=vmbr0,gw=10.1.2.1,hwaddr=BC:24:11:5A:00:C8,ip=10.1.2.200/24,type=veth
onboot: 1
ostype: debian
rootfs: local-zfs:subvol-200-disk-0,size=2T
swap: 0
"""
SNAPSHOT = """
[before_upgrade]
#taken before the driver was changed
arch: amd64
cores: 32
dev0: /dev/nvidia0,gid=44
hostname: ct200
memory: 262144
ostype: debian
rootfs: local-zfs:subvol-200-disk-0,size=2T
snaptime: 1764230400
swap: 0
lxc.cgroup2.devices.allow: c 507:* rwm
lxc.mount.entry: /dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file
"""
PENDING = "\n[pve:pending]\ncores: 64\ndelete: swap\n"
DRI = """lxc.cgroup2.devices.allow: c 226:0 rwm
lxc.cgroup2.devices.allow: c 226:128 rwm
lxc.mount.entry: /dev/dri dev/dri none bind,optional,create=dir
"""
MOUNTS = "".join(f"mp{n}: /tank/models{n},mp=/srv/models{n},ro=1\n" for n in range(10))

CORPUS = {
    "plain": PLAIN,
    "empty": "",
    "one line": "arch: amd64\n",
    "one line, no newline": "arch: amd64",
    "no final newline": PLAIN.rstrip("\n"),
    "crlf": PLAIN.replace("\n", "\r\n"),
    "crlf, no final newline": PLAIN.replace("\n", "\r\n").rstrip("\r\n"),
    "mixed line ends": PLAIN.replace("\n", "\r\n", 4),
    "unicode": "#Größe: 2 TB, 推理\n" + PLAIN + "tags: größe\n",
    "not utf-8": "#caf\udce9\n" + PLAIN,
    "description in several lines": "#GPU host%3A 8x RTX PRO 6000\n#do not migrate\n#\n" + PLAIN,
    "comments between": PLAIN.replace("memory", "# memory for 595 GB through the page cache\nmemory").replace(
        "swap", "#swap"
    ),
    "snapshot": PLAIN + SNAPSHOT,
    "two snapshots": PLAIN + "parent: before_upgrade\n" + SNAPSHOT + SNAPSHOT.replace("before_upgrade", "after-1"),
    "snapshot, no final newline": (PLAIN + SNAPSHOT).rstrip("\n"),
    "pending": PLAIN + PENDING,
    "pending and snapshot": PLAIN + PENDING + SNAPSHOT,
    "foreign dev0": PLAIN + "dev0: /dev/ttyUSB0,mode=0660\n",
    "foreign dev0 to dev2, a hole, dev4": PLAIN
    + "".join(f"dev{n}: /dev/dri/renderD{128 + n},gid=104\n" for n in (0, 1, 2, 4)),
    "foreign dev waits": PLAIN + "\n[pve:pending]\ndev0: /dev/ttyUSB0\n",
    "ten mount points": PLAIN + MOUNTS,
    "unprivileged": PLAIN + "unprivileged: 1\nlxc.idmap: u 0 100000 65536\nlxc.idmap: g 0 100000 65536\n",
    "dri by hand": PLAIN + DRI,
    "dri with equals signs": PLAIN + DRI.replace(": c", " = c").replace("entry: ", "entry = "),
    "raw keys in the middle": "arch: amd64\n" + DRI + PLAIN[12:],
    "hooks": PLAIN
    + "hookscript: local:snippets/gpu.pl\nlxc.hook.pre-start: /usr/local/bin/x\nlxc.hook.autodev = /bin/y\n",
    "environment": PLAIN + "lxc.environment.runtime: A=1\n" + DRI,
    "deny rule": PLAIN + "lxc.cgroup2.devices.deny: c 195:7 rwm\n",
    "blank lines": "\n\n" + PLAIN.replace("cores", "\n\ncores") + "\n\n\n",
    "blank lines and snapshot": PLAIN + "\n\n" + SNAPSHOT + "\n\n",
    "spaces": PLAIN.replace(": ", ":   ") + "lxc.apparmor.profile:    unconfined   \n",
    "lines that nobody can read": PLAIN + "what is this\n= 5\n;;\n",
    "a rule in our form before ours": PLAIN + "lxc.cgroup2.devices.allow: c 226:0 rw\n",
    "other accelerator": PLAIN
    + "lxc.cgroup2.devices.allow: c 240:0 rw\nlxc.mount.entry: /dev/apex_0 dev/apex_0 none bind,create=file 0 0\n",
    "locked": "lock: backup\n" + PLAIN,
}
LXC_CORPUS = {
    "plain": "lxc.include = /usr/share/lxc/config/common.conf\nlxc.uts.name = gpu\n#\nlxc.rootfs.path = dir:/gpu\n",
    "no final newline": "lxc.uts.name = gpu\nlxc.net.0.type = veth",
    "indented": "  lxc.uts.name = gpu\n\tlxc.net.0.type=veth\n\n",
    "cleared": "lxc.cgroup2.devices.allow =\nlxc.cgroup2.devices.deny = a\nlxc.cgroup2.devices.allow = c 1:3 rwm\n",
    "empty": "",
}
STYLES = ("dev", "cgroup")


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(CORPUS.values())) == len(CORPUS) >= 25


@pytest.mark.parametrize("name", CORPUS)
def test_lines_come_back_byte_for_byte(name: str) -> None:
    assert join_lines(split_lines(CORPUS[name])) == CORPUS[name]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", CORPUS)
def test_unmanaged_lines_keep_their_bytes(name: str, style: str) -> None:
    before = CORPUS[name]
    result = edit(before, nodes(0, 1), backend="proxmox", style=style, cgroup="v2", majors=MAJORS)
    assert not result.removed
    assert len(result.added) == (5 if style == "dev" else 10)
    left = result.text.split("\n")
    for line in result.added:
        left.remove(line if line in left else line + "\r")
    if before:
        assert "\n".join(left).rstrip("\r") == before.rstrip("\r") or "\n".join(left) == before
    assert result.text.endswith("\n") == (before.endswith("\n") or not before)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", CORPUS)
def test_second_run_is_unchanged_and_absent_restores(name: str, style: str) -> None:
    before = CORPUS[name]
    once = change(before, nodes(0, 1), style)
    assert once != before
    assert change(once, nodes(0, 1), style) == once
    assert change(once, [], style) == before


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", CORPUS)
def test_own_entries_are_known_after_proxmox_wrote_the_file(name: str, style: str) -> None:
    written = as_proxmox_writes(change(CORPUS[name], nodes(0, 1), style))
    assert change(written, nodes(0, 1), style) == written
    assert change(written, [], style) == as_proxmox_writes(CORPUS[name])


@pytest.mark.parametrize("name", CORPUS)
def test_style_switch_leaves_nothing_behind(name: str) -> None:
    dev = change(CORPUS[name], nodes(0, 1), "dev")
    cgroup = change(dev, nodes(0, 1), "cgroup")
    assert cgroup == change(CORPUS[name], nodes(0, 1), "cgroup")
    assert change(cgroup, nodes(0, 1), "dev") == dev


@pytest.mark.parametrize("name", CORPUS)
def test_rules_of_a_major_that_moved_are_replaced(name: str) -> None:
    before = change(CORPUS[name], nodes(0), "cgroup")
    result = edit(before, nodes(0, uvm=508), backend="proxmox", style="cgroup", cgroup="v2", majors=MOVED)
    assert [line for line in result.removed if "allow" in line] == [
        "lxc.cgroup2.devices.allow: c 511:0 rw",
        "lxc.cgroup2.devices.allow: c 511:1 rw",
    ]
    assert change(result.text, [], "cgroup", majors=MOVED) == CORPUS[name]


@pytest.mark.parametrize("name", CORPUS)
def test_dev_entries_have_no_number_that_could_move(name: str) -> None:
    before = change(CORPUS[name], nodes(0), "dev")
    assert change(before, nodes(0, uvm=508), "dev", majors=MOVED) == before


@pytest.mark.parametrize("name", LXC_CORPUS)
def test_plain_lxc(name: str) -> None:
    before = LXC_CORPUS[name]
    once = change(before, nodes(0), "cgroup", backend="lxc")
    assert "lxc.cgroup2.devices.allow = c 511:0 rw\nlxc.mount.entry = /dev/nvidia-uvm dev/nvidia-uvm" in once
    assert change(once, nodes(0), "cgroup", backend="lxc") == once
    assert change(once, [], "cgroup", backend="lxc") == before


PIECES = st.sampled_from(
    [
        *PLAIN.splitlines(),
        *DRI.splitlines(),
        "",
        "   ",
        "# note",
        "#",
        "dev0: /dev/ttyUSB0",
        "dev1: /dev/dri/card0,gid=44",
        "[snap]",
        "[pve:pending]",
        "lxc.environment.runtime: A=1",
        "lxc.mount.entry: /dev/fuse dev/fuse none bind,create=file 0 0",
        "unprivileged: 1",
        "größe",
        "[not a header",
    ]
)


@given(
    st.lists(st.tuples(PIECES, st.sampled_from(["\n", "\r\n"])), max_size=12), st.booleans(), st.sampled_from(STYLES)
)
def test_any_file_comes_back(pieces: list[tuple[str, str]], last_newline: bool, style: str) -> None:
    before = "".join(text + end for text, end in pieces)
    if pieces and not last_newline:
        before = before[: -len(pieces[-1][1])]
    once = change(before, nodes(0), style)
    assert change(once, nodes(0), style) == once
    assert change(once, [], style) == before
    other = "cgroup" if style == "dev" else "dev"
    assert change(change(once, nodes(0), other), nodes(0), style) == once


GUIDE = """lxc.cgroup2.devices.allow: c 195:* rwm
lxc.cgroup2.devices.allow: c 509:* rwm
lxc.cgroup2.devices.allow: c 226:* rwm
lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file
lxc.mount.entry: /dev/nvidiactl dev/nvidiactl none bind,optional,create=file
lxc.mount.entry: /dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file
lxc.mount.entry: /dev/dri dev/dri none bind,optional,create=dir
"""


def test_rules_copied_from_a_guide_are_taken_over() -> None:
    left = change(PLAIN + GUIDE, [], "dev")
    assert left == PLAIN + (
        "lxc.cgroup2.devices.allow: c 226:* rwm\nlxc.mount.entry: /dev/dri dev/dri none bind,optional,create=dir\n"
    )


def test_a_dead_rule_stays_while_no_driver_says_what_is_dead() -> None:
    assert "c 509:* rwm" in change(PLAIN + GUIDE, [], "dev", majors={"mem": 1})


def test_a_rule_that_another_driver_holds_now_stays() -> None:
    assert "c 240:* rwm" in change(PLAIN + GUIDE.replace("509", "240"), nodes(0), "dev")


def test_a_dead_rule_is_foreign_where_nobody_mounted_nvidia_by_hand() -> None:
    text = PLAIN + "lxc.cgroup2.devices.allow: c 509:* rwm\n"
    assert change(change(text, nodes(0), "cgroup"), [], "cgroup") == text


def test_a_foreign_rule_before_a_mount_entry_in_our_form_stays() -> None:
    text = (
        PLAIN
        + "lxc.cgroup2.devices.allow: c 226:0 rw\nlxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,create=file 0 0\n"
    )
    assert change(text, [], "dev") == PLAIN + "lxc.cgroup2.devices.allow: c 226:0 rw\n"


def test_a_foreign_dynamic_rule_before_a_mount_entry_in_our_form_stays() -> None:
    text = (
        PLAIN
        + "lxc.cgroup2.devices.allow: c 240:5 rw\n"
        + "".join(
            f"lxc.mount.entry: /dev/{name} dev/{name} none bind,create=file 0 0\n" for name in ("nvidia-uvm", "apex_0")
        )
    )
    assert change(text, [], "dev") == (
        PLAIN
        + "lxc.cgroup2.devices.allow: c 240:5 rw\nlxc.mount.entry: /dev/apex_0 dev/apex_0 none bind,create=file 0 0\n"
    )


def test_an_environment_line_does_not_part_a_pair() -> None:
    # Proxmox VE moves it before all other raw lines at its next write.
    text = change(PLAIN, nodes(0), "cgroup").replace("rw\nlxc.mount", "rw\nlxc.environment.runtime: A=1\nlxc.mount")
    assert change(text, nodes(0), "cgroup") == text
    assert change(text, [], "cgroup", majors=MOVED) == PLAIN + "lxc.environment.runtime: A=1\n" * 4


def test_raw_lines_stand_at_the_end_of_the_live_section() -> None:
    assert change(PLAIN + SNAPSHOT, nodes(0), "cgroup").startswith(PLAIN + "lxc.cgroup2.devices.allow: c 195:0 rw\n")


def test_no_whole_major_is_left_when_one_gpu_of_two_is_granted() -> None:
    text = change(PLAIN + "lxc.cgroup2.devices.allow: c 195:* rwm\n", nodes(0), "cgroup")
    assert covering_rule(text, "proxmox", "195:0") == "lxc.cgroup2.devices.allow: c 195:0 rw"
    assert covering_rule(text, "proxmox", "195:1") == ""


@pytest.mark.parametrize(
    ("rule", "covers"),
    [
        ("a", True),
        ("c *:* rwm", True),
        ("c 195:* rwm", True),
        ("c 195:1 r", True),
        ("c 195:2 rw", False),
        ("b *:* rwm", False),
    ],
)
def test_what_a_rule_covers(rule: str, covers: bool) -> None:
    line = f"lxc.cgroup2.devices.allow: {rule}"
    assert covering_rule(PLAIN + line + "\n", "proxmox", "195:1") == (line if covers else "")


def test_a_rule_of_a_snapshot_covers_nothing() -> None:
    assert covering_rule(PLAIN + "\n[old]\nlxc.cgroup2.devices.allow: a\n", "proxmox", "195:1") == ""


def test_taking_a_gpu_away_removes_its_entry_alone() -> None:
    result = edit(
        change(PLAIN, nodes(0, 1), "dev"), nodes(1), backend="proxmox", style="dev", cgroup="v2", majors=MAJORS
    )
    assert (result.removed, result.added) == (("dev0: /dev/nvidia0,mode=0666",), ())


def test_another_owner_replaces_the_entry_in_its_place() -> None:
    result = edit(
        change(PLAIN, nodes(0), "dev"),
        nodes(0, mode="0660", gid=44, uid=7),
        backend="proxmox",
        style="dev",
        cgroup="v2",
        majors=MAJORS,
    )
    assert result.added[0] == "dev0: /dev/nvidia0,gid=44,mode=0660,uid=7"
    assert "dev0: /dev/nvidia0,mode=0666" in result.removed


def test_the_same_entry_written_by_a_person_is_enough() -> None:
    text = PLAIN + "dev7: path=/dev/nvidia0,uid=0,mode=0666\n"
    assert "dev7: path=/dev/nvidia0,uid=0,mode=0666" in change(text, nodes(0), "dev")
    assert change(text, nodes(0), "dev").count("/dev/nvidia0") == 1


def test_an_entry_that_denies_writing_is_replaced() -> None:
    text = PLAIN + "dev0: /dev/nvidia0,deny-write=1,mode=0666\n"
    assert "deny-write" not in change(text, nodes(0), "dev")


def test_an_entry_that_is_there_twice_is_left_once() -> None:
    text = PLAIN + "dev0: /dev/nvidia0,mode=0666\ndev1: /dev/nvidia0,mode=0666\n"
    assert change(text, nodes(0), "dev").count("/dev/nvidia0,") == 1


def test_free_indices_pass_by_used_and_waiting_ones() -> None:
    text = PLAIN + "dev0: /dev/ttyUSB0\ndev2: /dev/ttyUSB2\n" + "\n[pve:pending]\ndev1: /dev/ttyUSB1\n"
    added = edit(text, nodes(0), backend="proxmox", style="dev", cgroup="v2", majors=MAJORS).added
    assert [line.split(":")[0] for line in added] == ["dev3", "dev4", "dev5", "dev6"]


def test_no_free_index_is_told() -> None:
    text = PLAIN + "".join(f"dev{n}: /dev/ttyS{n}\n" for n in range(254))
    with pytest.raises(LxcError, match="4 dev<n> entries are needed and 2 are free"):
        change(text, nodes(0), "dev")


def test_plain_lxc_knows_no_dev_entries() -> None:
    with pytest.raises(LxcError, match="plain LXC knows no dev<n> entries; set style"):
        change("", nodes(0), "dev", backend="lxc")


def test_cgroup_v1_has_a_key_of_its_own() -> None:
    v1 = edit(PLAIN, nodes(0), backend="proxmox", style="cgroup", cgroup="v1", majors=MAJORS)
    assert v1.added[0] == "lxc.cgroup.devices.allow: c 195:0 rw"
    assert edit(v1.text, [], backend="proxmox", style="cgroup", cgroup="v2", majors=MAJORS).text == PLAIN
    assert "lxc.cgroup.devices" not in change(v1.text, nodes(0), "cgroup")


def test_cgroup_version_is_what_is_mounted(tmp_path: Path) -> None:
    assert cgroup_version(str(tmp_path)) == "v1"
    (tmp_path / "cgroup.controllers").touch()
    assert cgroup_version(str(tmp_path)) == "v2"


@pytest.mark.parametrize(
    ("pending", "found"),
    [
        ("dev0: /dev/nvidia1\n", ["dev0: /dev/nvidia1"]),
        ("delete: swap,!dev0\n", ["delete: swap,!dev0"]),
        ("dev0: /dev/ttyUSB0\n", ["dev0: /dev/ttyUSB0"]),
        ("dev9: /dev/ttyUSB0\ndelete: swap\n", []),
    ],
)
def test_waiting_changes_of_our_entries_are_seen(pending: str, found: list[str]) -> None:
    text = change(PLAIN, nodes(0), "dev") + "\n[pve:pending]\n" + pending + SNAPSHOT
    assert pending_conflicts(text) == found


def test_nothing_waits_in_a_snapshot() -> None:
    assert pending_conflicts(PLAIN + SNAPSHOT) == []


def test_live_options_are_those_of_the_live_section() -> None:
    options = live_options(PLAIN + "lock: backup\n" + SNAPSHOT)
    assert (options["lock"], options["ostype"], options.get("dev0")) == ("backup", "debian", None)


@pytest.mark.parametrize(
    ("text", "backend", "expected"),
    [
        (PLAIN + "unprivileged: 1\n", "proxmox", True),
        (PLAIN, "proxmox", False),
        (PLAIN + "\n[old]\nunprivileged: 1\n", "proxmox", False),
        ("lxc.idmap = u 0 100000 65536\n", "lxc", True),
        ("lxc.uts.name = a\n", "lxc", False),
    ],
)
def test_unprivileged(text: str, backend: str, expected: bool) -> None:
    assert is_unprivileged(text, backend) is expected


def test_defaults_are_not_written() -> None:
    assert dev_value(Device("/dev/nvidia0", 195, 0)) == "/dev/nvidia0,mode=0666"
