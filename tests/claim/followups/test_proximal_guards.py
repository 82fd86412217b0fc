"""Settings at which proximal sampling leaves its tolerance are inconclusive; those beside them are not."""

import pytest

from pathlines.claim.followups import proximal as of

ROUND = ((1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("predict", "setting", "undecided"),
    [
        (of.predict_limit, of.Cases(), False),
        (of.predict_limit, of.Cases(cases=((1, 1, 0.45, 1),), steps=(2.63,)), True),
        (of.predict_limit, of.Cases(cases=((1, 1, 0.45, 1),), steps=(2.0,)), False),
        (of.predict_plane, of.Plane(), False),
        (
            of.predict_plane,
            of.Plane(
                precision=((0.5, 0.0), (0.0, 0.25)), preconditioner=ROUND, regularisation=1.0, beta=1.0, step=5.85
            ),
            True,
        ),
        (of.predict_first, of.FirstSteps(), False),
        (of.predict_first, of.FirstSteps(count=60, nodes=121), False),
        (of.predict_first, of.FirstSteps(step=1.45, count=60), True),
        (of.predict_first, of.FirstSteps(start=5.0), True),
        (of.predict_particles, of.Particles(), False),
        (of.predict_particles, of.Particles(sizes=(50, 200, 800)), False),
        (of.predict_particles, of.Particles(sizes=(10, 200)), True),
        (of.predict_particles, of.Particles(sizes=(50, 51)), True),
        (of.predict_particles, of.Particles(count=50), True),
        (of.predict_particles, of.Particles(step=1.1), True),
    ],
)
def test_what_is_undecided(predict, setting, undecided):
    assert bool(predict(setting).undecided) == undecided


def test_shaken_particles_are_compared_with_the_ring_they_reach():
    """Seed 0 leaves the square for the pentagon; two seeds of another shake stay."""
    pentagon, square = of.theory.ring_radius(5), of.theory.ring_radius(4, True)
    for shaken, seed, known in ((0.3, 0, pentagon), (0.1, 0, square)):
        found = of.predict_few(of.Few(shaken=shaken, seed=seed))
        assert found.values["radius"] == pytest.approx(known, rel=1e-12) and not found.undecided
    assert set(of.predict_few(of.Few(count=10)).undecided) == {"divergence", "radius", "rise"}
