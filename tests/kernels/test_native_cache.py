"""The cache of compiled kernels: nobody else's code is loaded, and damaged files are compiled again."""

import ctypes
import os
import shutil

import pytest

from pathlines.kernels.native import build, prebuilt

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A tiny library instead of the kernels, in a cache of its own."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "seven.cpp").write_text('extern "C" int seven() { return 7; }')
    monkeypatch.setattr(build, "FOLDER", source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path / "cache" / "pathlines" / "native"


def seven(path):
    return ctypes.cdll.LoadLibrary(str(path)).seven()


def test_compiled_once_and_private(cache):
    first = build._compiled()
    written = first.stat().st_mtime_ns
    assert seven(first) == 7
    assert build._compiled().stat().st_mtime_ns == written
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-1] + b"x"])
def test_a_damaged_library_is_compiled_again(cache, damage):
    path = build._compiled()
    path.write_bytes(damage(path.read_bytes()))
    assert seven(build._compiled()) == 7


def test_a_library_planted_under_the_name_is_not_loaded(cache):
    path = build._compiled()
    path.with_suffix(".sha256").unlink()
    path.write_bytes(b"planted")
    assert build._compiled().read_bytes() != b"planted"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_a_file_of_another_user_is_not_loaded(cache, suffix):
    path = build._compiled()
    os.chown(path.with_suffix(suffix), 12345, -1)
    assert not build._whole(path)
    assert build._compiled().stat().st_uid == os.geteuid()


def test_a_digest_that_is_no_text_is_no_digest(cache):
    path = build._compiled()
    path.with_suffix(".sha256").write_bytes(b"\xff" * 64)
    assert seven(build._compiled()) == 7


def test_what_killed_compilations_left_is_removed(cache):
    path = build._compiled()
    ours, others = cache / f"{path.stem}-left", cache / "kernels-0123456789abcdef-at-work"
    for folder in (ours, others):
        folder.mkdir()
        (folder / "attend.o").write_bytes(b"half")
    path.unlink()
    assert seven(build._compiled()) == 7
    assert not ours.exists()
    assert others.exists()
    assert {f.name for f in cache.iterdir()} == {f"{path.stem}{s}" for s in (".so", ".sha256", ".lock")} | {others.name}


def test_a_folder_that_others_can_write_to_is_refused(cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(OSError, match="others can write"):
        build._compiled()


def test_a_folder_of_another_user_is_refused(cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(OSError, match="another user"):
        build._compiled()


def test_a_compiler_of_several_words(cache, monkeypatch):
    monkeypatch.setenv("CXX", "env LC_ALL=C g++")
    assert seven(build._compiled()) == 7


@pytest.fixture
def brought(cache, tmp_path, monkeypatch):
    """What a wheel would bring, for this kind of machine."""
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path / "brought")
    if not prebuilt._levels():
        pytest.skip("no levels of this kind of machine are known")
    return prebuilt.prebuild()


def test_the_fastest_library_that_the_processor_can_run_is_taken(brought, monkeypatch):
    for (_, needed), path in zip(prebuilt._levels(), brought, strict=True):
        monkeypatch.setattr(prebuilt, "_features", lambda needed=needed: needed | {"more"})
        assert prebuilt.brought() == path and seven(path) == 7
    monkeypatch.setattr(prebuilt, "_features", frozenset)
    assert prebuilt.brought() is None


@pytest.mark.parametrize("spoil", ["source", "flags", "calls", "damage"])
def test_libraries_of_other_sources_or_interfaces_and_damaged_ones_are_not_taken(brought, monkeypatch, spoil):
    monkeypatch.setattr(prebuilt, "_features", lambda: prebuilt._levels()[0][1])
    assert prebuilt.brought() == brought[0]
    if spoil == "source":
        (build.FOLDER / "seven.cpp").write_text('extern "C" int seven() { return 8; }')
    elif spoil == "flags":
        monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-g"))
    elif spoil == "calls":
        monkeypatch.setattr(prebuilt, "call_version", lambda: "9.9")
    else:
        for path in brought:
            path.write_bytes(path.read_bytes()[:-1])
    assert prebuilt.brought() is None


def test_own_kernels_can_be_asked_for(brought, cache, monkeypatch):
    monkeypatch.setattr(prebuilt, "_features", lambda: prebuilt._levels()[0][1])
    loaded = []
    monkeypatch.setattr(build.ctypes.cdll, "LoadLibrary", lambda path: loaded.append(path) or ctypes.CDLL(path))
    for choice in ("on", "own"):
        monkeypatch.setenv(build.CHOICE, choice)
        build.native_library.__wrapped__()
    assert loaded[0] == str(brought[0]) and loaded[1].startswith(str(cache))
