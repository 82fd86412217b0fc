"""Study: one subject at many settings, explained before it starts, run anywhere, resumed, one labelled array.

A setting that fails is data (``status``), a killed run loses the chunk in flight, and the numbers of a setting do not
depend on what it is run with. xyzpy, xsweep and signac have the manners; theirs is one call for each setting, where
settings that share a compiled program must run as one batch and results are addressed by code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from pathlines.claim.base import Claim
from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require
from pathlines.foundation.files import write_whole
from pathlines.foundation.setting import fields
from pathlines.integrate.checked import time_grid
from pathlines.integrate.run import provenance
from pathlines.store.address import address
from pathlines.store.results import Store, file_bytes
from pathlines.sweep.axes import Axis, made_axes
from pathlines.sweep.chunks import ChunkStore, study_root
from pathlines.sweep.drive import Drive, Standing
from pathlines.sweep.engines import Engine, check_engine, engine_named, live_only
from pathlines.sweep.foresight import Forecast, chunk_size, foreseen, with_record
from pathlines.sweep.locate import EnoughRead, reading_a_script
from pathlines.sweep.outline import outline_of, require_same
from pathlines.sweep.plan import StudyPlan, repetitions
from pathlines.sweep.refine import refined
from pathlines.sweep.subject import Known, fixed_setting, found_by_name, of_claim, of_definition, recorded

Watch = Callable[[Standing], None]


def study(
    target: Any,
    axes: Mapping[str, Any] | None = None,
    *,
    repeat: int = 1,
    record: Any = (),
    times: Sequence[float] | str | None = None,
    size: str = "quick",
    many: int = 0,
    along: Sequence[str] = (),
    load: Sequence[str] = (),
    **setting: Any,
) -> Study:
    """Describe a study: one model, claim or function at all settings of some axes.

    Args:
        target: a model by name ("sa"), a class of models or a function that builds one; a claim or its id
            ("clustering/CL-21"); or any function of numbers (or of one ``Setting``) that returns a number, numbers by
            name or an xarray Dataset.
        axes: values by field: a sequence, or text: "1:9:9" (nine from 1 to 9), "8:128:log" (8, 16, …, 128; ":log:7" for
            seven), "0:1:random:50" (":3" more for the seed), "0:1:halton:50" and "0:1:sobol:63" (low discrepancy),
            "16,32,64". Fields joined by "/" go together: {"n/d": ([16, 64], [2, 3])}.
        repeat: repetitions with derived seeds, the first of which is the seed itself. The more, the smaller the
            standard errors, which fall like repeat^{-1/2}.
        record: of models, observables or their names; by default a few that fit.
        times: of models, depth-times at which they are recorded (numbers, or text as for axes); by default the end. The
            more, the larger the answer.
        size: of claims, "quick" or "full".
        many: functions that take arrays: how many settings to hand over at once. The larger, the fewer calls.
        along: with ``many``, the fields that are handed over as arrays; by default those that take fractions.
        load: files that register the model, the claim or the observables.
        setting: fields that stay the same: ``until=30``, ``d=2``; for models those of the model and ``n``, ``d``,
            ``until``, ``start``, ``layers``, ``step``, ``method``, ``rtol``, ``seed``, ``dtype``.

    ``study(...).run()`` gives an xarray Dataset with the axes as dimensions.
    """
    files = tuple(str(Path(f).resolve()) for f in load)
    many = positive_integer("many", many, 0)
    require(size in ("quick", "full"), "size", "be 'quick' or 'full'", size)
    known = _known(target, files, size, many > 0)
    if along:
        known = msgspec.structs.replace(known, subject=msgspec.structs.replace(known.subject, along=tuple(along)))
    if known.subject.kind != "model":
        setting |= {k: v for k, v in (("record", record), ("times", times)) if v not in ((), None)}
    fixed = fixed_setting(known, setting)
    made = made_axes(known.title, known.record, axes or {})
    varied = {name for axis in made for name in axis.names}
    lacking = [f for f in (f.name for f in msgspec.structs.fields(known.record)) if f not in fixed and f not in varied]
    if lacking:
        raise ArgumentError(f"{known.title} needs `{'`, `'.join(lacking)}`: make it an axis or give it a value.")
    if positive_integer("repeat", repeat) > 1:
        if "seed" not in fixed:
            raise ArgumentError(
                f"Argument `repeat` must be 1 for {known.title}: it has no seed, so all would be equal."
            )
        if "seed" in varied:
            raise ArgumentError("Argument `repeat` must be 1 where `seed` is an axis.")
        made = (*made, repetitions(int(fixed["seed"]), repeat))
    if known.subject.kind == "model":
        first = {**fixed, **{n: v[0] for a in made for n, v in zip(a.names, a.values)}}
        known = with_record(known, first, recorded(record), _times(times, fixed["until"], "until" in varied))
    return Study(known, fixed, made, many)


def _known(target: Any, files: tuple[str, ...], size: str, many: bool) -> Known:
    if isinstance(target, str):
        from pathlines.foundation.load import load_file

        for file in files:
            load_file(file)
        known = found_by_name(target, files)
        return of_claim(known.thing, files, size) if known.subject.kind == "claim" else known
    if isinstance(target, Claim):
        return of_claim(target, files, size)
    require(callable(target), "target", "be the name of a model or claim, a claim, a class or a function", target)
    return of_definition(target, many)


def _times(times: Any, until: float, varied: bool) -> tuple[float, ...]:
    """Times of records; none: the end of the run."""
    if times is None:
        return ()
    if varied:
        raise ArgumentError("Argument `times` must be left out where `until` is an axis.")
    axis = made_axes("`times`", _Times, {"time": times})[0]
    return tuple(time_grid(None, sorted(finite_array("times", axis.values[0]))).tolist())


class _Times(msgspec.Struct):
    time: float


class Study:
    """Settings along axes with what is evaluated at each; made by ``study``."""

    def __init__(self, known: Known, fixed: dict[str, Any], axes: tuple[Axis, ...], many: int = 0) -> None:
        self.known, self.fixed, self.axes, self.many = known, fixed, axes, many

    @property
    def shape(self) -> dict[str, int]:
        """Points along each dimension."""
        return {axis.dim: len(axis) for axis in self.axes}

    def plan(self) -> StudyPlan:
        """Its points in chunks."""
        whole = StudyPlan(self.fixed, self.axes, self.known.within_program, 1)
        size = self.many or chunk_size(self.known, self.fixed, self.axes, whole)
        return StudyPlan(self.fixed, self.axes, self.known.within_program, size)

    def predict(self, store: str | Path | Store | None = None) -> Forecast:
        """How many runs, and about how long and large, before anything starts."""
        return foreseen(self.known, self.fixed, self.axes, self.plan(), self._chunks(store))

    def run(
        self,
        on: str | Engine = "serial",
        *,
        store: str | Path | Store | None = None,
        fresh: bool = False,
        retry_failed: bool = False,
        workers: int | None = None,
        out: str | Path | None = None,
        extend: bool = False,
        watch: Watch | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> xr.Dataset:
        """Compute what the store does not have, and return all of it, labelled.

        ``on`` is "serial" (this process, runs of models on all its cores), "processes" (``workers`` of them) or a Dask
        cluster: "dask" starts one here, "tcp://…" joins one, "cluster.toml" makes one of SLURM's or PBS's. ``fresh``
        computes again what the store has, ``retry_failed`` what failed. ``out`` is a netCDF file that must not hold
        another study, unless ``extend`` says that its points belong to this one too. ``store`` is a folder, or a URL
        that fsspec knows (s3://bucket/folder) and every worker reaches; $PATHLINES_STORE by default. ``watch`` hears
        how it stands after each chunk, and ``announce`` what it runs on (of Dask: where its dashboard is). Interrupted
        or killed, the same call goes on from there.
        """
        if reading_a_script():
            raise EnoughRead
        if out is not None and extend:
            data = self.extended(out).run(
                on, store=store, fresh=fresh, retry_failed=retry_failed, workers=workers, watch=watch, announce=announce
            )
            write_whole(Path(out), file_bytes(data))
            return data
        path = None if out is None else Path(out)
        if path is not None:
            require_same(path, self.outline())
        _check_reach(self._chunks(store).root, on)
        with self.engine(on, workers) as engine:
            if announce is not None:
                announce(engine.label)
            data = self._through(engine, self._chunks(store), fresh, retry_failed, watch)
        if path is not None:
            write_whole(path, file_bytes(data))
        return data

    @contextmanager
    def engine(self, on: str | Engine, workers: int | None = None) -> Iterator[Engine]:
        """What is named by ``on``, for the length of a block; an engine that is open already stays so."""
        if not isinstance(on, str):
            yield on
            return
        check_engine(on)
        if on != "serial" and live_only(self.known):
            raise ArgumentError(f"`{self.known.title}` stands in no file, so workers cannot find it; use on='serial'.")
        engine = engine_named(on, self.known, workers)
        try:
            yield engine
        finally:
            engine.close()

    def refine(self, runs: int, variable: str | None = None, **how: Any) -> xr.Dataset:
        """Spend ``runs`` runs where ``variable`` (the first one by default) changes, between the ends of its axes.

        One or two axes of numbers; the values between their ends are not used. ``how`` is as for ``run``: on, store,
        workers, watch. The answer has one dimension ``point``, with the axes as coordinates. Extra `cluster`.
        """
        if reading_a_script():
            raise EnoughRead
        return refined(self, runs, variable, how)

    def _through(self, engine: Any, chunks: ChunkStore, fresh: bool, retry: bool, watch: Watch | None) -> xr.Dataset:
        plan = self.plan()
        chunks.store.check_writable()
        if fresh:
            chunks.forget(chunk.name for chunk in plan.chunks())
        drive = Drive(plan, self.known.subject, chunks)
        left = drive.recall(retry)
        if watch is not None:
            watch(drive.standing())
        for standing in drive.through(left, engine):
            if watch is not None:
                watch(standing)
        return self._labelled(drive)

    def collect(self, store: str | Path | Store | None = None) -> xr.Dataset:
        """What the store has of it, without computing anything; the rest is missing."""
        chunks = self._chunks(store)
        drive = Drive(self.plan(), self.known.subject, chunks)
        drive.recall()
        return self._labelled(drive)

    def _labelled(self, drive: Drive) -> xr.Dataset:
        data = drive.grid.dataset(self.axes, fields(self.known.record))
        return data.assign_attrs(
            pathlines_study=msgspec.json.encode(self.outline(), order="sorted").decode(),
            versions=msgspec.json.encode(provenance(), order="sorted").decode(),
            citation="; ".join(paper.citation for paper in self.known.papers),
        )

    def _chunks(self, store: str | Path | Store | None) -> ChunkStore:
        root = study_root(store.root if isinstance(store, Store) else store)
        subject = msgspec.to_builtins(self.known.subject)
        told = {k: v for k, v in subject.items() if k not in ("files", "home")}
        where = address(f"{self.known.subject.kind}/{self.known.title}", told, self.known.code())
        return ChunkStore(root, where.replace("<", "").replace(">", ""))

    def outline(self) -> dict[str, Any]:
        """What the study is, in plain values."""
        return outline_of(self.known, self.fixed, self.axes)

    def extended(self, path: str | Path) -> Study:
        """The study with the points of the one in a file besides its own."""
        from pathlines.sweep.outline import joined_axes

        return Study(self.known, self.fixed, joined_axes(Path(path), self.known, self.outline(), self.axes), self.many)

    def __repr__(self) -> str:
        dims = " × ".join(f"{axis.dim} {len(axis)}" for axis in self.axes) or "one setting"
        return f"Study of {self.known.title}: {dims}, {self.plan().count} runs"


def _check_reach(root: str, on: str | Engine) -> None:
    """Refuse a store in the memory of this process for workers that are others."""
    if root.startswith("memory://") and isinstance(on, str) and on != "serial":
        raise ArgumentError("A store at memory:// is in this process alone: use on='serial', or a folder.")
