"""Advice: targets met by the change that is proposed, what-ifs, text and page; the random model agrees."""

import json
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import pathlines as pl
from pathlines.advice import Target, advice_figure, advise, gradient_lines, simulate, simulate_gradients
from pathlines.advice.knobs import KNOBS, WHAT_IFS
from pathlines.advice.terminal import curve_lines
from pathlines.architecture import Architecture, Deviations, from_numbers
from pathlines.cli import advise as command
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.predict import cosine_curve

SMALL = Architecture(
    width=64, heads=4, kv_heads=2, layers=8, mlp_width=128, norm="rms", gated=True, activation="silu", positions="rope",
    deviations=Deviations.equal(0.06),
)  # fmt: skip
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 8, "intermediate_size": 128, "initializer_range": 0.06, "vocab_size": 100,
}  # fmt: skip


def test_smallest_change_meets_the_target():
    found = advise(SMALL, 12, Target(0.4, 6), what_if=False)
    assert found.met is False and found.prediction.mean_cosine[6] > 0.4
    best = found.changes[0]
    assert best.knob == "embedding std" or abs(np.log(best.factor)) > 0
    turned = {k.name: k.turn for k in KNOBS}
    for change in found.changes:
        if change.factor is not None:
            after = cosine_curve(turned[change.knob](SMALL, change.factor), 12, 6)[-1]
            assert after == pytest.approx(change.cosine) and 0.38 < after <= 0.4
    sizes = [abs(np.log(c.factor)) for c in found.changes if c.factor]
    assert sizes == sorted(sizes)
    assert "missed" in found.verdict


def test_target_that_is_met_needs_no_change():
    found = advise(SMALL, 12, Target(0.99, 8), what_if=False)
    assert found.met and found.changes == () and "met" in found.verdict
    beyond = advise(SMALL, 12, Target(1.0, 9), what_if=False)
    assert "layers beyond the 8 there are go on in the same way" in beyond.assumptions
    with pytest.raises(ArgumentError, match="target_cosine"):
        Target(1.5, 3)


def test_what_ifs_and_collapse():
    found = advise(SMALL, 12)
    names = {o.name: o.cosine for o in found.outcomes}
    assert names["embeddings of unit mean square"] < 0.5 * found.prediction.mean_cosine[-1]
    assert names["both of these"] < names["embeddings of unit mean square"]
    curve = cosine_curve(SMALL, 12, 32)
    for level, layer in found.collapse.items():
        assert layer is None or (curve[layer] >= level and curve[layer - 1] < level)
    assert any("drowns the embedding" in line for line in found.regime)
    json.dumps(found.as_dict())
    assert found.whole_context is None
    seen = advise(SMALL.changed(mask="full", context=12, positions="none"), 12, what_if=False)
    assert seen.whole_context == pytest.approx(seen.prediction.mean_cosine[-1], abs=0.005)
    for what in WHAT_IFS:
        changed = what.change(SMALL)
        assert changed is None or changed != SMALL


def test_simulation_agrees():
    found = simulate(SMALL, 12, seeds=16)
    predicted = advise(SMALL, 12, what_if=False).prediction
    largest, mean = found.errors(predicted.mean_cosine)
    error = max(found.spread) / 4
    assert largest < 4 * error + 0.02 and mean <= largest


def test_terminal_curve():
    lines = curve_lines(np.linspace(0, 1, 9), np.full(9, 0.1), np.linspace(0, 0.8, 9))
    assert len(lines) == 13 and sum(line.count("●") for line in lines) == 9 and any("○" in line for line in lines)
    assert len(max(curve_lines(np.zeros(500), np.zeros(500)), key=len)) < 90


@pytest.fixture
def app():
    app = typer.Typer()
    command.register(app)
    return app


def test_command(app, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**CONFIG, "novelty": 1}))
    ids = tmp_path / "ids.txt"
    ids.write_text("1, 2, 3 4 1 5 6 7")
    page, picture = tmp_path / "advice.html", tmp_path / "advice.png"
    options = ["--ids", str(ids), "--target-cosine", "0.1", "--at-layer", "4"]
    result = CliRunner().invoke(app, [str(config), *options, "--report", str(page), "--figure", str(picture)])
    assert result.exit_code == 1
    assert "target ≤ 0.1 missed" in result.output and "smallest single change" in result.output
    assert "not understood in config.json: novelty" in result.output
    assert "<svg" in page.read_text() and picture.stat().st_size > 10_000
    result = CliRunner().invoke(app, ["64", "4", "4", "32", "128", "0.05", "--n", "6", "--json"])
    document = msgspec.json.decode(result.stdout)
    assert result.exit_code == 0 and len(document["prediction"]["mean_cosine"]) == 5
    changes = ["--placement", "post", "--deviations-embedding", "1"]
    result = CliRunner().invoke(app, [str(config), *changes, "--n", "6", "--simulate", "--seeds", "2", "--json"])
    document = msgspec.json.decode(result.stdout)
    assert document["architecture"]["placement"] == "post"
    assert document["simulated"]["model"] == "our own chain (fields were changed)"


def test_command_errors(app, tmp_path):
    config = tmp_path / "config.json"
    config.write_text("{")
    result = CliRunner().invoke(app, [str(config)])
    assert isinstance(result.exception, ArgumentError) and "not valid JSON" in str(result.exception)
    config.write_text(json.dumps(CONFIG))
    for options, message in {
        ("--at-layer", "3"): "needs --target-cosine",
        ("--target-cosine", "0.5", "--at-layer", "0"): "`at_layer` must be an integer ≥ 1",
        ("--ids", str(config)): "whole numbers",
        ("--ids", str(tmp_path / "none")): "There is no file",
        ("--deviations-embedding", "-1"): "`deviations.embedding` must be a finite number ≥ 0",
    }.items():
        result = CliRunner().invoke(app, [str(config), *options])
        assert message in str(result.exception)


def test_advice_from_python_by_file_fields_numbers_and_record(tmp_path):
    fields = {"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 2, "n_positions": 32}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    reading = pl.read_architecture(tmp_path)
    found = [
        pl.advise(source, 4, what_if=False).verdict for source in (tmp_path, fields, reading, reading.architecture)
    ]
    assert len(set(found)) == 1
    assert pl.predict(fields, 4).mean_cosine[-1] == pl.predict(reading.architecture, 4).mean_cosine[-1]
    with pytest.raises(ArgumentError, match="`architecture` must be a file"):
        pl.advise(5)


@pytest.mark.parametrize(
    "code",
    [
        "from pathlines.cli.program import outcome; sys.argv[1:] = ['advise', '64', '2', '2', '32', '128', '0.02', "
        "'--n', '4', '--target-cosine', '0.01']; assert outcome() == 1",
        "import pathlines as pl; assert pl.advise([64, 2, 2, 32, 128, 0.02], 4).outcomes",
    ],
)
def test_advice_needs_no_simulator(code):
    """Reader, predictor, page: JAX, PyTorch and Matplotlib stay where they are."""
    end = "; print(sorted({'jax', 'torch', 'matplotlib', 'xarray'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}{end}"], capture_output=True, text=True)
    assert done.stderr.strip().endswith("[]"), done.stderr


def test_gradients_go_with_the_advice(tmp_path):
    """Two sentences, a table in JSON, random modules beside them, and two panels."""
    advice = advise(from_numbers((64, 4, 3, 128, 256, 0.06)).architecture, 12, what_if=False)
    found = advice.gradients
    table = advice.as_dict()["gradients"]
    assert set(table["matrices"]) == {"query", "key", "value", "output", "mlp_in", "mlp_out"}
    assert len(table["stream"]) == 4
    measured = simulate_gradients(advice.architecture, 12, seeds=12)
    assert max(measured.errors(found).values()) < 0.2
    assert len(gradient_lines(found, measured)) >= 3
    assert len(advice_figure(advice, None, measured).axes) > len(
        advice_figure(msgspec.structs.replace(advice, gradients=None)).axes
    )


def test_one_layer_for_every_depth_has_no_prediction_of_gradients():
    shared = from_numbers((64, 4, 3, 128, 256, 0.06)).architecture.changed(shared=True)
    assert advise(shared, 8, what_if=False).gradients is None


def test_layers_that_differ_in_the_chain_and_in_theory():
    """Windows and positions by layer, sinks, shifted gates, narrow values: 4 standard errors and 0.03 for the width."""
    mixed = Architecture(
        width=128, heads=4, layers=5, mlp_width=256, norm="rms", gated=True, activation="quick_gelu", positions="rope",
        sinks=True, gate_shift=1.0, value_dim=16, deviations=Deviations.equal(0.07),
        by_layer={"window": (3, 0), "positions": ("rope", "none", "rope")},
    )  # fmt: skip
    for changes in ({}, {"placement": "output", "qk_norm": True, "activation": "relu2"}):
        changed = mixed.changed(**changes)
        found, theory = simulate(changed, 12, seeds=16), cosine_curve(changed, 12)
        error = np.array(found.spread) / 4
        assert np.all(np.abs(np.array(found.mean) - theory) < 4 * error + 0.03)
    with pytest.raises(ArgumentError, match="our own chain has no experts"):
        simulate(mixed.changed(experts=4), 12, seeds=2)


def test_two_plain_sentences_come_first():
    found = advise(SMALL, 12)
    first, second = found.summary
    assert "the tokens of this model are" in first and "mean cosine" in first and "helps most" in second
    missed = advise(SMALL, 12, Target(0.4, 6), what_if=False)
    assert "is missed" in missed.summary[1] and missed.changes[0].knob in missed.summary[1]
    assert found.as_dict()["summary"] == list(found.summary)
    noted = advise({**CONFIG, "novelty": 1, "rope_scaling": None}, 6, what_if=False)
    assert any("`novelty` of config.json is not understood" in line for line in noted.assumptions)


def test_template_on_the_command_line(app, tmp_path):
    result = CliRunner().invoke(app, ["--template", "olmo2"])
    assert result.exit_code == 0 and 'placement = "output"' in result.output
    result = CliRunner().invoke(app, [])
    assert isinstance(result.exception, ArgumentError) and "--template FAMILY" in str(result.exception)
