"""The backward recursion against reference values, exact identities, and a module's own gradients."""

import math

import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations, from_config
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward import descended
from pathlines.limit.architecture.backward_attention import attention_back
from pathlines.limit.architecture.backward_norms import below_norm
from pathlines.limit.architecture.backward_tape import recorded
from pathlines.limit.architecture.gradients import predict_gradients
from pathlines.limit.architecture.perceptron import _kernel, _slope, absolute_share, mean_degree, perceptron_slopes
from pathlines.model.architecture.random_gradients import GradientSample

TOP = np.array([[1, 0.2, 0, 0.1], [0.2, 1.5, 0.3, 0], [0, 0.3, 0.8, -0.1], [0.1, 0, -0.1, 1.2]])


def stack(placement, activation="relu", gated=False, mask="full", **others):
    """The small stacks of the reference values: d = 256, a = a_m = ¼, b = ½, unless changed."""
    b, a, a_m, d = (others.pop(k, v) for k, v in (("b", 0.5), ("a", 0.25), ("a_m", 0.25), ("width", 256)))
    w, value = 4 * d, a**0.25 * d**-0.5
    logits = math.sqrt(b / d)
    sizes = Deviations(
        embedding=1.0, query=logits, key=logits, value=value, output=value, mlp_in=d**-0.5,
        mlp_gate=d**-0.5 if gated else 0.0, mlp_out=math.sqrt(a_m / w),
    )  # fmt: skip
    fields = {"heads": 4, "layers": 3, "positions": "none"} | others
    return Architecture(
        width=d, mlp_width=w, activation=activation, gated=gated, mask=mask, placement=placement, deviations=sizes,
        **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mask", "value", "query", "key", "looked"),
    [
        ("full", [0.383125] * 4, [0.02296875, 0.034453125, 0.018375, 0.0275625], [0.039375] * 4, 0.11025),
        (
            "causal",
            [1.9272905093, 0.6772905093, 0.1668530093, 0.08484375],
            [0, 0.0459375, 0.0217777778, 0.0275625],
            [0.055068287, 0.055068287, 0.019630787, 0.00984375],
            0.0977277778,
        ),
    ],
)
def test_attention_to_second_order(mask, value, query, key, looked):
    architecture = stack("pre", mask=mask)
    x = 0.3 + 0.7 * np.eye(4)
    found = attention_back(AttendedGram(architecture, 4), x, TOP[None], np.inf)
    np.testing.assert_allclose(np.diag(found.value[0]), value, atol=1e-9)
    np.testing.assert_allclose(0.25 * np.diag(found.query[0]), query, atol=1e-9)
    np.testing.assert_allclose(0.25 * np.diag(found.key[0]), key, atol=1e-9)
    assert 0.25 * np.sum(TOP * x * found.turned) == pytest.approx(looked, abs=1e-9)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("positions", ["none", "alibi"])
def test_sum_rules(seed, positions):
    """Rows of weights sum to one: values keep the sum of all gradients, keys have none."""
    architecture = stack("pre", mask="causal", positions=positions, b=1.5)
    x = 0.3 + 0.7 * np.eye(4)
    found = attention_back(AttendedGram(architecture, 4), x, TOP[None], 256.0, seed)
    assert found.value.sum() == pytest.approx(TOP.sum(), abs=1e-12)
    assert found.key.sum() == pytest.approx(0, abs=1e-12)


def test_rotary_pairs_agree_with_drawn_heads():
    """The expansion's weights at small b, against heads drawn with their turned keys."""
    architecture = stack("pre", mask="causal", positions="rope", b=0.02)
    x = 0.3 + 0.7 * np.eye(12)
    one = np.eye(12)[None]
    attended = AttendedGram(architecture, 12, samples=400)
    expanded = attention_back(attended, x, one, 256.0)
    drawn = np.mean([attention_back(attended, x, one, 256.0, seed).turned for seed in range(12)], axis=0)
    np.testing.assert_allclose(np.sum(expanded.turned * x), np.sum(drawn * x), rtol=0.03)


KINDS = ("query", "value", "mlp_in", "mlp_out")


@pytest.mark.parametrize(
    ("architecture", "squares", "sums", "matrices"),
    [
        (
            stack("post"),
            (8.102127206, 7.905324567, 7.869083811),
            (13.298938766, 11.161726377, 9.422362215),
            (0.045385397, 0.447152563, 0.883920015, 0.938557653),
        ),
        (
            stack("post", mask="causal"),
            (8.210125820, 7.952863720, 7.881485151),
            (11.373096014, 10.091402614, 8.977402262),
            (0.053219071, 0.851853102, 0.886481415, 0.924712182),
        ),
        (
            stack("pre", "gelu", mask="causal"),
            (13.708402282, 10.938865261, 9.198643416),
            (18.167653736, 13.174848134, 10.078473312),
            (0.077226184, 1.165759222, 1.056068799, 1.002782163),
        ),
        (
            stack("sandwich"),
            (60.134561442, 13.687002097, 9.759534635),
            (269.432810638, 24.515220783, 12.172843397),
            (0.204115532, 15.012464521, 10.759119815, 11.378940324),
        ),
        (
            stack("parallel", "gelu", mask="causal"),
            (13.664016938, 10.941146118, 9.206029459),
            (17.731638321, 12.998498017, 10.020824019),
            (0.071551881, 1.067850375, 1.052988897, 0.998602939),
        ),
        (
            stack("pre", "silu", gated=True),
            (14.377117301, 11.515554582, 9.487057005),
            (21.899966052, 15.332383821, 10.977654413),
            (0.071156108, 0.538151221, 0.845086020, 0.845086020),
        ),
    ],
    ids=("post", "post causal", "pre", "sandwich", "parallel", "gated"),
)
def test_whole_stacks_in_infinite_width(architecture, squares, sums, matrices):
    tape = recorded(architecture, np.eye(8), 3, 64, finite=False, draw=False)
    found = descended(tape, np.eye(8)[None], finite=False)
    np.testing.assert_allclose(np.trace(found.grams[:3, 0], axis1=1, axis2=2), squares, rtol=1e-8)
    np.testing.assert_allclose(found.grams[:3, 0].sum(axis=(1, 2)), sums, rtol=1e-8)
    sizes = architecture.deviations
    scaled = [found.matrices[kind][1].square * getattr(sizes, kind) ** 2 for kind in KINDS]
    np.testing.assert_allclose(scaled, matrices, rtol=3e-8)


def test_gate_and_common_gradients():
    gated = recorded(stack("pre", "silu", gated=True), np.eye(8), 3, 64, finite=False, draw=False)
    gate = descended(gated, np.eye(8)[None], finite=False).matrices["mlp_gate"][1]
    assert gate.square / 256 == pytest.approx(0.900377541, rel=1e-8)
    tape = recorded(stack("post"), np.eye(8), 3, 64, finite=False, draw=False)
    common = descended(tape, np.ones((1, 8, 8)), finite=False).grams[:3, 0]
    np.testing.assert_allclose(np.trace(common, axis1=1, axis2=2), (13.481013504, 11.310983710, 9.509930567), rtol=1e-8)
    np.testing.assert_allclose(common.sum(axis=(1, 2)), (94.979032774, 82.317288955, 72.144082256), rtol=1e-8)


@pytest.mark.parametrize(
    ("activation", "square", "kernel", "slope"),
    [
        ("gelu", 0.1, 0.029090462, 0.030301195),
        ("gelu", 0.3072, 0.106484593, 0.113806865),
        ("gelu", 1.0, 0.425221483, 0.455850866),
        ("gelu", 4.0, 1.929865010, 2.024178637),
        ("silu", 0.3072, 0.090990354, 0.095000375),
        ("silu", 1.0, 0.355775520, 0.379482352),
        ("tanh", 1.0, 0.394294490, 0.464402898),
        ("tanh", 4.0, 0.635257714, 1.023534356),
    ],
)
def test_slopes_of_activations(activation, square, kernel, slope):
    architecture = stack("pre", activation).changed(deviations={"mlp_in": math.sqrt(square / 256)})
    found = perceptron_slopes(architecture, np.eye(2))
    sigma = float(f"{math.sqrt(square):.3g}") if activation in ("silu", "tanh") else 0  # tables keep three digits of σ
    accuracy = 3e-7 if activation == "gelu" or sigma**2 == square else 2e-3
    accuracy = 5e-4 if activation == "tanh" and square == 4.0 else accuracy  # the reference's Gauss-Hermite, not ours
    assert found.kernel[0, 0] == pytest.approx(kernel, rel=accuracy)
    assert found.slope[0, 0] == pytest.approx(slope, rel=accuracy)
    assert mean_degree(activation, math.sqrt(square)) == pytest.approx(slope / kernel, rel=accuracy)


def test_mean_degrees_and_shares_of_signs():
    degrees = {0.1: 1.041620, 0.3072: 1.068764, 1.0: 1.072032, 4.0: 1.048871}
    for square, degree in degrees.items():
        assert mean_degree("gelu", math.sqrt(square)) == pytest.approx(degree, abs=1e-6)
    assert mean_degree("relu", 0.7) == pytest.approx(1.0, abs=1e-12)
    assert mean_degree("tanh", 2.0) == pytest.approx(1.611211, abs=5e-4)
    shares = {("relu", 1.0): 0.318310, ("gelu", 1.0): 0.374287, ("silu", 1.0): 0.447346}
    for (activation, sigma), share in shares.items():
        assert absolute_share(activation, sigma) == pytest.approx(share, abs=2e-6)


def test_bracket_of_a_norm():
    """Exact: a Gaussian gradient of dimension d loses one direction in d (RMS), or two (LayerNorm)."""
    gram = np.diag([4.0, 4.0])
    for norm, lost in (("rms", 1), ("layer", 2)):
        architecture = stack("pre", norm=norm)
        found = below_norm(architecture, np.eye(2), gram)
        assert found[0, 0] == pytest.approx(0.25 * (1 - lost / 256), rel=1e-12)
        assert below_norm(architecture, np.eye(2), gram, isotropic=False)[0, 0] == 0.25


SHAPES = {
    "gpt2": (
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
        ((0, 1, 3, 6, 9, 11), (279.80, 80.325, 48.204, 35.573, 30.024, 27.666)),
        {"query": (40.71, 2.420), "value": (265.87, 69.17), "output": (1302.5, 338.9), "mlp_in": (348.4, 101.9)},
    ),
    "bert": (
        {
            "model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072, "vocab_size": 30522,
        },
        ((0, 1, 3, 6, 9, 11), (6.5407, 6.6071, 6.7669, 7.0780, 7.4824, 7.8085)),
        {"query": (3.205, 2.051), "value": (90.94, 93.10), "output": (90.94, 93.10), "mlp_in": (137.4, 140.5)},
    ),
    "smollm2": (
        {
            "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
            "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "initializer_range": 0.02,
            "rms_norm_eps": 1e-5,
        },
        ((0, 1, 7, 15, 22, 29), (601.6, 32.76, 9.567, 7.464, 6.791, 6.392)),
        {"query": (39.4, 1.558), "value": (596.3, 69.86), "mlp_in": (285.6, 30.67), "mlp_gate": (285.4, 31.23)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_published_models(name):
    """Reference values with the expansion; the forward pass differs in its last terms of order 1/d, by 0.3 %."""
    fields, (layers, stream), matrices = SHAPES[name]
    found = predict_gradients(from_config(fields).architecture, 64, draw=False)
    np.testing.assert_allclose(found.stream[list(layers)], stream, rtol=4e-3)
    for kind, ends in matrices.items():
        np.testing.assert_allclose(found.matrices[kind][[0, -1]], ends, rtol=8e-3)
    assert found.trainable


def test_the_map_is_linear_and_does_not_see_the_names_of_tokens():
    architecture = stack("post", b=1.5)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((8, 20))
    one, two = rows @ rows.T, TOP.trace() * np.eye(8)
    tape = recorded(architecture, np.eye(8), 3, 64, finite=True, draw=True)
    down = descended(tape, np.array([one, two, one + two])).grams[0]
    np.testing.assert_allclose(down[0] + down[1], down[2], rtol=1e-12, atol=1e-12)
    start = 0.2 * one / 20 + 0.8 * np.eye(8)
    order = rng.permutation(8)
    there = predict_gradients(architecture, gram=start, loss=one, draw=False)
    back = predict_gradients(architecture, gram=start[order][:, order], loss=one[order][:, order], draw=False)
    np.testing.assert_allclose(back.grams[0], there.grams[0][order][:, order], rtol=1e-10, atol=1e-12)


def test_a_zero_output_matrix_has_its_gradient_and_starves_the_others():
    found = predict_gradients(stack("pre").changed(deviations={"output": 0.0}), 8)
    assert found.matrices["output"].min() > 1
    assert found.matrices["value"].max() == found.matrices["query"].max() == 0.0
    assert np.all(np.isfinite(found.stream))


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": "rope", "kv_heads": 2},
        {"mask": "causal", "window": 3},
        {"positions": "alibi", "mask": "causal"},
        {"logit_cap": 1.0},
        {"qk_norm": True, "logit_multiplier": 0.125},
    ],
    ids=("rope", "window", "alibi", "cap", "qk-norm"),
)
def test_prediction_vs_the_module_itself(changes):
    """Variants without reference values: norms of the stream and of every matrix, 12 seeds of width 128."""
    architecture = stack("pre", "gelu", width=128, layers=2, b=1.0, **changes)
    found = predict_gradients(architecture, 12)
    seeds = [GradientSample(architecture, 12, seed) for seed in range(12)]
    stream = np.exp(np.mean([np.log(s.stream()) for s in seeds], axis=0))
    np.testing.assert_allclose(found.stream, stream, rtol=0.06)
    for name, norms in found.matrices.items():
        measured = np.exp(np.mean([np.log(s.matrices()[name]) for s in seeds], axis=0))
        np.testing.assert_allclose(norms, measured, rtol=0.12, err_msg=name)


@pytest.mark.parametrize(
    ("loss", "match"),
    [
        ("hinge", "loss"),
        (np.eye(3), "8 × 8"),
        (np.zeros((8, 8)), "zero"),
        (-np.eye(8), "semi-definite"),
        (np.full((8, 8), np.nan), "loss"),
        ("cross-entropy", "vocabulary"),
    ],
)
def test_losses_that_mean_nothing(loss, match):
    with pytest.raises(ArgumentError, match=match):
        predict_gradients(stack("pre"), 8, loss=loss)


def test_labels_are_checked():
    architecture = stack("pre", vocabulary=10)
    with pytest.raises(ArgumentError, match="labels"):
        predict_gradients(architecture, 8, loss="cross-entropy")
    with pytest.raises(ArgumentError, match="Labels"):
        predict_gradients(architecture, 8, loss="cross-entropy", labels=[10] * 8)
    with pytest.raises(ArgumentError, match="count"):
        predict_gradients(architecture, 8, loss="cross-entropy", labels=[-100] * 8)


@pytest.mark.parametrize("activation", ["relu2", "quick_gelu", "silu", "relu"])
def test_slope_of_a_kernel_is_its_derivative(activation):
    """Central differences of κ, of fourth order: 1e-6 of the largest slope."""
    rho, step, sigma = np.linspace(-0.9, 0.9, 13), 1e-3, 0.7
    kernel = lambda x: _kernel(activation, x, sigma)  # noqa: E731
    near, far = (kernel(rho + h) - kernel(rho - h) for h in (step, 2 * step))
    found = (8 * near - far) / (12 * step)
    np.testing.assert_allclose(_slope(activation, rho, sigma), found, atol=1e-6 * np.abs(found).max())


def test_what_layers_of_two_kinds_do_to_gradients():
    """A window that hides nothing is no window: layers that differ in name only have the law of equal ones."""
    plain = stack("pre", "gelu")
    mixed = plain.changed(by_layer={"window": (0, 100)})
    one, two = predict_gradients(plain, 8), predict_gradients(mixed, 8)
    np.testing.assert_allclose(one.stream, two.stream, rtol=2e-3)  # heads are drawn anew
    assert predict_gradients(plain.changed(mask="causal", by_layer={"window": (0, 1)}), 8).stream[0] != one.stream[0]
    with pytest.raises(ArgumentError, match="layers without a perceptron among others"):
        predict_gradients(plain.changed(by_layer={"mlp_width": (plain.mlp_width, 0)}), 8)
