"""Reference values of section 9 of the specification 04-metastability-and-modes, to their digits."""

import numpy as np
import pytest

from pathlines.limit.metastability.growth import dominant_degree, growth_rates, threshold
from pathlines.limit.metastability.merging import log_merging_time
from pathlines.limit.metastability.slow_laws import polygon_rates

RATES = [
    (2, 1, 1, 0.20791041534971, 0.44638996589653),
    (2, 5, 2, 0.094361524665209, 0.51411739614589),
    (2, 5, 3, 0.1252993361028, 0.68267833361675),
    (2, 5, 4, 0.1101408483082, 0.60008913953451),
    (2, 9, 4, 0.09507858414351, 0.7044970292996),
    (2, 25, 7, 0.05820653860985, 0.72579651319041),
    (2, 100, 14, 0.029286264350395, 0.73317610297821),
    (3, 9, 4, 0.039063597229886, 0.70314476084683),
    (3, 25, 7, 0.014412011462984, 0.72060057314918),
    (4, 9, 3, 0.019808038363231, 0.70061846248262),
    (8, 16, 3, 6.3118999699967e-4, 0.71571328988014),
    (64, 49, 2, 2.0853535502495e-15, 0.75822805982296),
]

THRESHOLDS = {
    2: (1.04445686211, 3.1654344427, 6.21129837943, 10.228483163, 15.2362767285),
    3: (1.81615452544, 4.4252930124, 7.96237985155, 12.4774331094, 17.9848939527),
    4: (2.52852031879, 5.65582321706, 9.6987862733, 14.7176117492, 20.7275555721),
    8: (5.25111070404, 10.5003416829, 16.5950434151, 23.6427038967, 31.6706318872),
    16: (10.6055648566, 20.1214184176, 30.3321235702),
    64: (42.618439455, 77.7365985202, 112.63663686),
}

BETAS = (1, 2, 4, 5, 7, 9, 16, 25, 49, 81, 100, 200, 400)
DEGREES = {
    2: (1, 2, 3, 3, 4, 4, 6, 7, 10, 13, 14, 20, 28),
    3: (1, 2, 2, 3, 3, 4, 5, 7, 9, 12, 14, 20, 28),
    8: (1, 1, 1, 1, 2, 2, 3, 5, 7, 10, 11, 17, 25),
    64: (1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 6, 11),
}

MERGING = [
    (4, 2.0, 0.01, 83.266785878498, 44.50405881789, 24.176103407595),
    (9, 1.5, 0.01, 506.52553653777, 255.87649501499, 123.36651851162),
    (25, 1.0, 0.01, 5970.4970092274, 2987.5953679073, 1408.5987554868),
    (81, 1.2, 0.01, 3.8746927994863e20, 1.9373463997431e20, None),
    (400, 0.8, 0.001, 2.3817311131803e50, 1.1908655565901e50, None),
]

POLYGONS = {
    (2, 4): ((3.35462627903e-4,), (6.70700260933e-4,)),
    (3, 5): ((0.00235060857313,), (0.00704403382936,)),
    (4, 9): ((5.5535173338e-4, 0.00111068823678), (0.00222085874821, 0.00444165659153)),
    (5, 9): ((0.00431110814147, 0.0112860890191), (0.0214700202495, 0.0562065603151)),
    (7, 25): (
        (1.2878833563e-4, 4.18173098231e-4, 6.50241658773e-4),
        (9.01371109312e-4, 0.00292673360203, 0.00455094820834),
    ),
}


@pytest.mark.parametrize(("d", "beta", "k", "usa", "sa"), RATES)
def test_growth_rates(d, beta, k, usa, sa):
    # thirteen or fourteen digits are given, and ive has about one rounding in each
    assert growth_rates(beta, d, k, "usa")[-1] == pytest.approx(usa, rel=2e-13)
    assert growth_rates(beta, d, k, "sa")[-1] == pytest.approx(sa, rel=2e-13)


@pytest.mark.parametrize("d", THRESHOLDS)
def test_thresholds(d):
    found = [threshold(k, d) for k in range(1, len(THRESHOLDS[d]) + 1)]
    np.testing.assert_allclose(found, THRESHOLDS[d], rtol=1e-11)


@pytest.mark.parametrize("d", DEGREES)
def test_dominant_degrees(d):
    assert tuple(dominant_degree(beta, d) for beta in BETAS) == DEGREES[d]


@pytest.mark.parametrize(("beta", "start", "end", "usa", "equal", "unequal"), MERGING)
def test_merging_times(beta, start, end, usa, equal, unequal):
    assert np.exp(log_merging_time(beta, start, end)) == pytest.approx(usa, rel=1e-12)
    assert np.exp(log_merging_time(beta, start, end, "sa")) == pytest.approx(equal, rel=1e-12)
    if unequal is not None:
        assert np.exp(log_merging_time(beta, start, end, "sa", (0.2, 0.8))) == pytest.approx(unequal, rel=1e-12)


@pytest.mark.parametrize(("k", "beta"), POLYGONS)
def test_polygon_rates(k, beta):
    for kind, rates in zip(("usa", "sa"), POLYGONS[k, beta], strict=True):
        np.testing.assert_allclose(polygon_rates(k, beta, kind)[1 : len(rates) + 1], rates, rtol=1e-11)
