"""Five tokens under every kind of attention: fields and positions to twelve digits (DOP853 at 1e-12 elsewhere)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.attention import LinearAttention, SigmoidAttention, SinkhornAttention, UnnormalisedAttention
from pathlines.claim.gaussian import reference_set as R
from pathlines.integrate import flow
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

I = np.arange(1, 6)  # noqa: E741
X = np.stack([np.cos(I), np.sin(2 * I)], axis=1)
ONE, TWO, QK = FixedWeights(R.V, R.A), FixedWeights([R.V, R.V2], [R.A, R.A2]), FixedWeights(R.V, R.Q, R.K)

# name: options, Γ_1, Γ_5, Σ|Γ_i|², x_1(1), x_5(1)
TABLE = {
    "softmax": ({}, (-0.131297425265, 0.012185412248), (-0.030792428038, -0.121043588050), 0.189780960352,
                (0.410514658190, 0.884568831299), (0.275357657782, -0.712214230350)),
    "two heads": ({"weights": TWO}, (-0.156947081876, -0.067401881085), (-0.092862390683, -0.119797775826),
                  0.231955157376, (0.356548641439, 0.807592041225), (0.168589383919, -0.699012329630)),
    "weights": ({"multiplicities": I / 15}, (-0.078863551709, -0.064331740265), (0.001738919767, -0.135293154151),
                0.215434884382, (0.493309844232, 0.807855078908), (0.320358955509, -0.720086828081)),
    "causal": ({"mask": "causal"}, (-0.292558021652, 0.397980407712), (-0.030792428038, -0.121043588050),
               0.435656598919, (0.095177289473, 1.266134179875), (0.258467012034, -0.708515645762)),
    "l2": ({"attention": "l2", "weights": QK}, (0.064667655300, -0.029314048858), (-0.160931303912, -0.062830630185),
           0.145150850378, (0.596388039403, 0.866822069528), (0.134961690855, -0.627124848060)),
    "sinkhorn": ({"attention": SinkhornAttention(0.7, "1")}, (-0.093805035000, 0.048145771611),
                 (0.044359769603, -0.133542395629), 0.198370133823, (0.461600401587, 0.949722638307),
                 (0.383383085447, -0.704740925571)),
    "sigmoid": ({"attention": SigmoidAttention()}, (-0.055910559794, -0.017863611447),
                (-0.032844041357, -0.051686785003), 0.032654327699, (0.485985265624, 0.883553287428),
                (0.253098030426, -0.605376390563)),
    "unnormalised": ({"attention": UnnormalisedAttention()}, (-0.125420459841, 0.011639984596),
                     (-0.030682072079, -0.120609783961), 0.249937717849, (0.424717524525, 0.884352586128),
                     (0.280666062457, -0.728077766134)),
    "linear": ({"attention": LinearAttention()}, (-0.011863014333, 0.102459688110), (0.081138079257, -0.034620472036),
               0.069861242505, (0.525341086344, 1.026688647566), (0.383573376228, -0.579219727982)),
    "sphere": ({"space": "sphere"}, (-0.035561480849, 0.021130544898), (0.031756065384, 0.016558171601),
               0.049448132270, (0.483467884286, 0.875362099284), (0.498064266878, -0.867140119046)),
}  # fmt: skip

velocity = eqx.filter_jit(lambda model, x: model.drift(x, jnp.zeros(())))


@pytest.mark.parametrize("name", TABLE)
def test_fields_and_positions(name):
    options, first, last, power, *ends = TABLE[name]
    model = SelfAttention(1.0, **{"weights": ONE, "space": "euclidean", **options})
    start = X / np.linalg.norm(X, axis=1, keepdims=True) if name == "sphere" else X
    field = lambda x: np.asarray(velocity(model, jnp.asarray(x)))  # noqa: E731
    found = field(start)
    np.testing.assert_allclose(found[[0, 4]], [first, last], atol=1e-12)
    assert np.sum(found**2) == pytest.approx(power, abs=1e-12)
    run = solve_ivp(
        lambda t, y: field(y.reshape(5, 2)).ravel(), (0, 1), start.ravel(), "DOP853", rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(run.y[:, -1].reshape(5, 2)[[0, 4]], ends, atol=2e-11)


def test_the_engine_has_the_same_positions():
    model = SelfAttention(1.0, attention=SinkhornAttention(0.7, "1"), weights=ONE, space="euclidean")
    run = flow(model, X, times=[1.0], method="rk4", step=0.02)
    np.testing.assert_allclose(run["tokens"].values[-1][[0, 4]], TABLE["sinkhorn"][4:], atol=1e-8)
