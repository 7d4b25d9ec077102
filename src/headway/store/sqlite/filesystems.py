"""Which file systems a SQLite store may lie on: those whose locks can be trusted."""

import os

from headway.base.errors import StoreError

# Locks lie on these; POSIX and flock locks of different hosts do not see each other, or mmap tears.
NETWORK_FILE_SYSTEMS = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs"),
        *("ceph", "glusterfs", "lustre", "gpfs", "orangefs", "davfs"),
    )
)
LOCAL_FUSE = frozenset({"fuseblk", "fuse.fuse-overlayfs", "fuse.lxcfs"})


def refuse_network_file_system(folder: str, kind: str | None) -> None:
    """Raise if a folder on this kind of file system lies where kernel locks cannot be trusted."""
    if kind is None:
        return
    network_fuse = kind.startswith("fuse") and kind not in LOCAL_FUSE
    if kind in NETWORK_FILE_SYSTEMS or network_fuse:
        raise StoreError(
            f"{folder} is on {kind}, a network file system on which locks cannot be trusted. "
            "Use --home on a local disk, or accept the risk with store.unsafe_fs"
        )


def file_system(folder: str) -> str | None:
    """The kind of file system, or None where the device itself says that it is a local disk."""
    device = os.stat(folder).st_dev
    if os.major(device) != 0:
        return None
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[2] == wanted:
                return fields[fields.index("-") + 1]
    return None
