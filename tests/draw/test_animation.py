"""Animations: the course they show, and every way of writing them."""

from typing import Annotated

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from pathlines.cli import animate
from pathlines.draw.animation import ANIMATIONS, Reel, animation, check_target, write_reel
from pathlines.draw.animations import life_of_clusters
from pathlines.draw.style import new_figure
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means

NAME = "metastability/life-of-clusters"
TINY = {"n": 200, "until": 20.0, "forming": 6, "coarsening": 5, "beta": 9.0}


@pytest.fixture(scope="module")
def course():
    return life_of_clusters.compute(ANIMATIONS[NAME].picture.setting("quick", TINY))


def test_the_course_ends_in_consensus_with_rising_energy(course):
    assert course.angles.shape == (11, 200)
    assert np.all(np.diff(course.log_time) > -1e-9)
    assert np.all(np.diff(course.energy) > -1e-4)
    assert course.energy[-1] == pytest.approx(1.0)
    assert course.clusters[-1] == 1 and course.clusters[5] > 1
    assert abs(course.energy[5] - course.energy[6]) < 1e-3  # particles, then points with masses
    assert course.phase[0] == "formation" and course.phase[-1] == "consensus"


def test_life_of_clusters_as_frames(course, monkeypatch, tmp_path):
    monkeypatch.setattr(life_of_clusters, "compute", lambda s: course)
    reel = ANIMATIONS[NAME].reel(changes=TINY)
    assert reel.frames == 11 + life_of_clusters.HOLD
    write_reel(reel._replace(frames=3), tmp_path / "frames", dpi=40)
    assert len(list((tmp_path / "frames").glob("frame-*.png"))) == 3


def test_groups_go_around_the_circle():
    angles = np.array([0.05, -0.05, 1.0, 1.1, 2 * np.pi - 0.01, 3.0])
    labels = life_of_clusters.groups(angles, 0.2)
    assert labels[0] == labels[1] == labels[4]
    assert labels[2] == labels[3]
    assert len(np.unique(labels)) == 3
    assert len(np.unique(life_of_clusters.groups(np.linspace(0, 2 * np.pi, 40), 0.2))) == 1
    assert len(np.unique(life_of_clusters.groups(np.array([0.1, 0.2, 3.0]), 0.5))) == 2


class Dot(Setting):
    frames: Annotated[int, means("frames")] = 3


@pytest.fixture
def dot(monkeypatch):
    """A film of a moving dot, in a registry of its own entries."""
    monkeypatch.setattr(ANIMATIONS, "_entries", {name: ANIMATIONS[name] for name in ANIMATIONS})  # all are found first

    @animation("test/dot", METASTABILITY, "A dot that moves.", quick=Dot())
    def film(s):
        figure, ((axes,),) = new_figure()
        (point,) = axes.plot([0], [0], "o")
        axes.set(xlim=(-1, 5), ylim=(-1, 5))
        return Reel(figure, s.frames, lambda k: point.set_data([k], [k]))

    return "test/dot"


def test_gif_from_the_command_line(dot, tmp_path):
    app = typer.Typer()
    animate.register(app)
    target = tmp_path / "x.gif"
    result = CliRunner().invoke(app, [dot, "--animate", str(target), "--dpi", "40", "--frames", "4"])
    assert result.exit_code == 0, result.output
    assert "(4 frames)" in result.output
    with Image.open(target) as film:
        assert film.n_frames == 4


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="must end in"):
        check_target(tmp_path / "x.avi")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ArgumentError, match="needs the program ffmpeg"):
        check_target(tmp_path / "x.mp4")
    with pytest.raises(UnknownNameError, match="no animation"):
        ANIMATIONS["metastability/life"]


def test_parking_as_frames(tmp_path):
    reel = ANIMATIONS["causal/parking"].reel(changes={"n": 12, "until": 4.0, "frames": 3})
    write_reel(reel._replace(frames=2), tmp_path / "frames", dpi=40)
    assert len(list((tmp_path / "frames").glob("frame-*.png"))) == 2


def test_shared_tokens_as_frames(tmp_path):
    tiny = {"n": 2, "shared": 1, "prompts": 2, "in_attention": 2, "in_a_gate": 1}
    reel = ANIMATIONS["transport/shared-tokens"].reel(changes=tiny)
    reel.show(reel.frames - 1)  # the last frame: everyone has arrived
    write_reel(reel._replace(frames=2), tmp_path / "frames", dpi=40)
    assert len(list((tmp_path / "frames").glob("frame-*.png"))) == 2
