"""Access to one job's folder that no planted link can lead elsewhere.

The folder is opened once and everything inside is reached from its descriptor. Its last component
may not be a symbolic link, it must belong to this user, and nobody else may write into it.
"""

from __future__ import annotations

import errno
import os
import stat

# What says that this folder, or this file in it, is not as we made it. All else is the host's: no
# descriptor, no space, a failing disk.
_NOT_AS_MADE = {
    errno.ELOOP: "it is a link",
    errno.ENOTDIR: "it is no folder",
    errno.EISDIR: "it is a folder",
    errno.ENXIO: "it is no file",
    errno.EACCES: "it may not be opened",
    errno.EPERM: "it may not be opened",
}


class UnsafeFolder(OSError):  # noqa: N818
    """The folder, or a file in it, is a link, someone else's, writable by others, or not to be
    opened: what it says cannot be believed."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it; links are not followed. Whatever else was put in its
    place goes by itself: to open that, as `rmtree` does, could wait for the writer of a FIFO."""
    import shutil

    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


class Folder:
    """An open, checked folder. Names, not paths; close it, or use it in a `with`.

    One that is `kept` stays open after a `with`, for the next.
    """

    __slots__ = ("_kept", "fd", "path")

    def __init__(self, path: str, *, kept: bool = False) -> None:
        self.path = path
        self.fd = _open_checked(path)
        self._kept = kept

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._kept:
            self.close()

    def close(self) -> None:
        os.close(self.fd)

    def open(self, name: str, flags: int) -> int:
        # O_NONBLOCK: a planted FIFO must not hold us up. For a file it makes no difference.
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return os.open(name, flags, 0o600, dir_fd=self.fd)
        except OSError as error:
            _refuse(error, f"{self.path}/{name}")
            raise

    def read(self, name: str, *, most: int | None = None) -> bytes:
        """The whole content of a regular file; one that is larger than `most` is refused."""
        fd = self.open(name, os.O_RDONLY)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise UnsafeFolder(errno.EPERM, "not a regular file", f"{self.path}/{name}")
            if most is not None and status.st_size > most:
                raise UnsafeFolder(errno.EFBIG, "too large", f"{self.path}/{name}")
            chunks = []
            while chunk := os.read(fd, max(4096, status.st_size + 1)):
                chunks.append(chunk)
            return b"".join(chunks)
        finally:
            os.close(fd)

    def create(self, name: str, content: bytes) -> None:
        """Make a file that must not exist yet."""
        fd = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(fd, content)
        finally:
            os.close(fd)

    def touch(self, name: str) -> None:
        os.close(self.open(name, os.O_WRONLY | os.O_CREAT))

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            _refuse(error, f"{self.path}/{name}")
            raise
        return True

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove the file if it is there."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return


def make_folder(path: str) -> bool:
    """Make the folder, 0700, and those above it that are missing; False if it was there."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:
        make_folder(os.path.dirname(path))
        os.mkdir(path, 0o700)
    return True


def write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _refuse(error: OSError, path: str) -> None:
    """Raise what the error says about this folder, if it does."""
    words = _NOT_AS_MADE.get(error.errno or 0)
    if words is not None:
        raise UnsafeFolder(error.errno, words, path) from error


def _open_checked(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafeFolder(errno.EPERM, "not a real folder", path) from error
        _refuse(error, path)
        raise
    status = os.fstat(fd)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        os.close(fd)
        raise UnsafeFolder(errno.EPERM, "another user owns it or may write to it", path)
    return fd
