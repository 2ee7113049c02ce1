"""Give a pod of a real node an address in the nodes' network: a CNI plugin, started by containerd for each pod.

Owns one pair of devices a pod: `eth0` in the pod, its other end at the bridge. Runs on its own, in isolated mode:
imports nothing of ours. `python -I -S pod_network_plugin.py FOLDER`; FOLDER keeps the last address that was given.
"""

import fcntl
import json
import os
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path

BRIDGE = "pods"
GATEWAY = IPv4Address("10.244.0.1")
PREFIX = 16
VERSION = "1.0.0"


def next_address(folder: Path) -> IPv4Address:
    """An address that no pod had before: a late packet meets nobody."""
    with (folder / "addresses").open("a+") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        kept.seek(0)
        number = int(kept.read() or "0") + 1
        kept.truncate(0)
        kept.write(str(number))
    return GATEWAY + number


def add(folder: Path) -> dict[str, object]:
    """Wire one pod; returns the CNI result."""
    space, name = os.environ["CNI_NETNS"], os.environ["CNI_IFNAME"]
    address = next_address(folder)
    outer = f"pod{int(address):x}"

    def ip(*arguments: str, inside: bool = False) -> None:
        enter = ["nsenter", f"--net={space}"] if inside else []
        subprocess.run([*enter, "ip", *arguments], check=True, stdout=sys.stderr)

    # Process 1 of this process namespace is the node's own, in the nodes' network.
    ip("link", "add", name, "type", "veth", "peer", "name", outer, "netns", "1", inside=True)
    ip("link", "set", outer, "master", BRIDGE, "up")
    ip("address", "add", f"{address}/{PREFIX}", "dev", name, inside=True)
    ip("link", "set", name, "up", inside=True)
    ip("route", "add", "default", "via", str(GATEWAY), inside=True)
    return {
        "cniVersion": VERSION,
        "interfaces": [{"name": name, "sandbox": space}],
        "ips": [{"address": f"{address}/{PREFIX}", "gateway": str(GATEWAY), "interface": 0}],
    }


def main() -> None:
    command = os.environ["CNI_COMMAND"]
    if command == "VERSION":
        sys.stdout.write(json.dumps({"cniVersion": VERSION, "supportedVersions": [VERSION]}))
    elif command == "ADD":
        sys.stdout.write(json.dumps(add(Path(sys.argv[1]))))
    # DEL: the devices end with the pod's namespace.


if __name__ == "__main__":
    main()
