"""Files are there in full or not at all, whatever the disk says and whoever is killed."""

import errno
import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from pathlines.cli.common import writable
from pathlines.draw import save_figure
from pathlines.foundation import files
from pathlines.foundation.errors import ArgumentError, StoreError
from pathlines.foundation.files import whole_file, write_whole


def no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_content_and_permissions(tmp_path):
    path = write_whole(tmp_path / "a.txt", b"one")
    assert path.read_bytes() == b"one"
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    write_whole(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)
    assert {f.name for f in tmp_path.iterdir()} == {"a.txt", "plain"}


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a.txt", b"one")
    monkeypatch.setattr(files, "_flush", no_space)
    with pytest.raises(StoreError, match=r"a.txt cannot be written \(No space left on device\)"):
        write_whole(path, b"two")
    assert [f.read_bytes() for f in tmp_path.iterdir()] == [b"one"]


def test_a_block_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyError), whole_file(tmp_path / "a.gif") as unfinished:
        unfinished.write_bytes(b"half")
        assert unfinished.suffix == ".gif"
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_and_devices_written_to(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"one")
    link.symlink_to(real)
    write_whole(link, b"two")
    assert link.is_symlink()
    assert real.read_bytes() == b"two"
    write_whole(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_what_killed_writers_left_is_removed_and_what_is_being_written_stays(tmp_path):
    old, young, other = tmp_path / ".writing-old.pdf", tmp_path / ".writing-young.pdf", tmp_path / "old.pdf"
    for file in (old, young, other):
        file.write_text("")
    for file in (old, other):
        os.utime(file, (0, 0))
    write_whole(tmp_path / "a.pdf", b"")
    assert not old.exists()
    assert young.exists()
    assert other.exists()


def test_a_figure_that_cannot_be_written_is_one_error_and_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_flush", no_space)
    with pytest.raises(StoreError, match="No space left"):
        save_figure(Figure(), tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_asking_whether_a_file_can_be_written_changes_nothing(tmp_path):
    empty = tmp_path / "empty.pdf"
    empty.touch()
    writable(empty)
    writable(tmp_path / "new" / "a.pdf")
    assert empty.exists()
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(ArgumentError, match="is a folder"):
        writable(tmp_path)
    with pytest.raises(ArgumentError, match="File name too long"):
        writable(tmp_path / ("a" * 300))
