"""Every family of the table against the library's own module: the law of each matrix, and the curve it leads to."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from every_family import STACKS, fields_of, mean_cosines, module_of  # noqa: E402

from pathlines.architecture.family import FAMILIES  # noqa: E402
from pathlines.architecture.read import from_config  # noqa: E402
from pathlines.limit.architecture.predict import predict  # noqa: E402
from pathlines.probing.modules import from_fields, random_module  # noqa: E402
from pathlines.probing.roles import ELSEWHERE, role_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
CLASS = r"(cls_token|class_embedding)$"


@pytest.mark.parametrize("name", list(FAMILIES))
def test_second_moments_of_every_matrix(name):
    """Within five standard errors of what the reader says, whatever the matrix; none is unknown."""
    architecture = from_config(fields_of(name)).architecture
    said = architecture.deviations
    checked = set()
    for label, parameter in module_of(name, layers=2).named_parameters():
        label = re.sub(r"\.\d+\.", ".", label)
        if parameter.dim() < 2 or re.search(ELSEWHERE, label) or re.search(CLASS, label):
            continue
        role = role_of(label)
        assert role is not None, f"no one knows {label}"
        values = parameter.detach().numpy().astype(float)
        values = values[np.any(values.reshape(len(values), -1) != 0, axis=1)]  # the padding symbol is zero
        deep = from_config(fields_of(name, layers=2)).architecture.deviations
        want = 0.07 if role == "latent" else getattr(deep, role)
        kurtosis = np.mean(values**4) / np.mean(values**2) ** 2
        error = np.sqrt((kurtosis - 1) / values.size)
        assert abs(np.mean(values**2) / want**2 - 1) < 5 * error + 2e-3, (
            label,
            role,
            np.sqrt(np.mean(values**2)),
            want,
        )
        checked.add(role)
    assert {"mlp_in", "mlp_out", "output", "embedding"} <= checked and said.output > 0


FAST = ("gpt2", "olmo2", "gemma3_text", "qwen3_moe", "bert", "modernbert", "t5", "vit")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in FAST)) for n in FAMILIES])
def test_curve_of_the_module_is_the_predicted_one(name, seeds=12, n=16):
    """Mean cosine after every layer, over a dozen modules of width 128: 4 standard errors and what the width leaves."""
    architecture = from_config(fields_of(name)).architecture
    curves = []
    for seed in range(seeds):
        module = module_of(name, seed)
        image = {"pixel_values": torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(seed))}
        inputs = image if architecture.patch_inputs else {"input_ids": torch.arange(2, 2 + n)[None]}
        curves.append(mean_cosines(module, inputs, architecture.layers))
    measured, error = np.mean(curves, axis=0), np.std(curves, axis=0, ddof=1) / np.sqrt(seeds)
    found = predict(architecture, architecture.context if architecture.patch_inputs else n, spread=False)
    np.testing.assert_array_less(np.abs(measured - found.mean_cosine), 4 * error + 0.03)


@pytest.mark.parametrize("name", ["t5", "mt5", "umt5", "clip_text_model", "clip_vision_model"])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_gains_of_norms_follow_the_factor_where_the_library_lets_them(name, factor):
    """T5's norms begin at the factor that all its matrices are multiplied with; CLIP's do not."""
    fields = fields_of(name) | {"initializer_factor": factor}
    found = random_module(from_fields(fields), 0)
    gains = [
        p.detach().numpy()
        for label, p in (found.encoder if name in STACKS else found).named_parameters()
        if p.dim() == 1 and "norm" in label and label.endswith("weight")
    ]
    assert gains
    np.testing.assert_allclose(np.concatenate(gains), from_config(fields).architecture.norm_gain, rtol=1e-6)
