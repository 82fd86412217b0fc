"""The figure of lifetimes shows a certificate below the truth."""

from pathlines.draw.gallery import FIGURES


def test_certificate_is_below_the_truth():
    figure = FIGURES["metastability/certificate"].draw(changes={"gaps": [1.8], "points": 4, "beta_max": 60.0})
    shares = [y for line in figure.axes[1].lines for y in line.get_ydata() if y == y]
    assert shares
    assert max(shares) < 1
