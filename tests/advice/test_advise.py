"""Advice: targets met by the change that is proposed, what-ifs, text and page; the random model agrees."""

import json
import subprocess
import sys

import jax
import msgspec
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import pathlines as pl
from pathlines.advice import Target, advice_figure, advise, gradient_lines, simulate, simulate_gradients
from pathlines.advice.knobs import KNOBS, WHAT_IFS
from pathlines.advice.sweep import sweep, values_of
from pathlines.advice.target import UNSURE
from pathlines.advice.terminal import curve_lines
from pathlines.architecture import Architecture, Deviations, from_numbers
from pathlines.cli import advise as command
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate import chain
from pathlines.limit.architecture.predict import cosine_curve, predict
from pathlines.model.architecture.random_architecture import RandomArchitecture
from pathlines.model.architecture.token_embedding import TokenEmbedding

SMALL = Architecture(
    width=64, heads=4, kv_heads=2, layers=8, mlp_width=128, norm="rms", gated=True, activation="silu", positions="rope",
    deviations=Deviations.equal(0.06),
)  # fmt: skip
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 8, "intermediate_size": 128, "initializer_range": 0.06, "vocab_size": 100,
}  # fmt: skip


def test_smallest_change_meets_the_target_for_nine_of_ten():
    found = advise(SMALL, 12, Target(0.4, 6))
    assert found.met is False and found.prediction.mean_cosine[6] > 0.4
    turned = {k.name: k.turn for k in KNOBS}
    several = [change for change in found.changes if change.factor is not None]
    assert len(several) >= 3
    for change in several:
        after = predict(turned[change.knob](SMALL, change.factor), 12, layers=6)
        assert after.mean_cosine[-1] == pytest.approx(change.cosine, abs=0.01)
        assert change.share >= 0.9 and change.cosine + 1.28 * change.spread < 0.4
        closer = turned[change.knob](SMALL, change.factor**0.8)  # most of the way is not enough
        assert predict(closer, 12, layers=6).mean_cosine[-1] + 1.28 * change.spread + UNSURE > 0.4
    sizes = [abs(np.log(c.factor)) for c in several]
    assert sizes == sorted(sizes)
    assert "missed" in found.verdict


def test_remedies_hold_in_random_models_that_know_nothing_of_them():
    """The changed records, built: nine of ten seeds at or below the target (of sixteen twelve at least)."""
    target = Target(0.4, 6)
    found = advise(SMALL, 12, target)
    best = [remedy for remedy in found.remedies if remedy.meets][:3]
    assert len(best) == 3 and best[0].recipe and all(remedy.weights for remedy in best)
    for remedy in best:
        changes = {k: v for k, v in remedy.changes.items() if "." not in k}
        inner = {k.partition(".")[2]: v for k, v in remedy.changes.items() if "." in k}
        model = RandomArchitecture(SMALL.changed(**changes, **({"deviations": inner} if inner else {})))
        run = chain(
            model, TokenEmbedding(model, np.arange(12)), depth=6, key=jax.random.key(3), runs=16, record="mean_overlap"
        )
        last = run["mean_overlap"].transpose("run", ...).values[:, -1]
        assert np.sum(last <= 0.4) >= 12, (remedy.name, last)


def test_a_collapsed_model_gets_a_remedy_where_slopes_say_nothing():
    bert = {"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 8,
            "intermediate_size": 128, "initializer_range": 0.3}  # fmt: skip
    found = advise(bert, 8, Target(0.6, 8))
    assert found.prediction.mean_cosine[-1] > 0.99 and found.remedies[0].meets
    assert {"DeepNorm (α = (2L)^¼, β = (8L)^-¼)"} & {r.name for r in found.remedies}


def test_target_that_is_met_needs_no_change():
    found = advise(SMALL, 12, Target(0.99, 8))
    assert found.met and found.changes == () and "met" in found.verdict
    beyond = advise(SMALL, 12, Target(1.0, 9), what_if=False)
    assert "layers beyond the 8 there are go on in the same way" in beyond.assumptions
    with pytest.raises(ArgumentError, match="target_cosine"):
        Target(1.5, 3)
    with pytest.raises(ArgumentError, match="confidence"):
        Target(0.5, 3, 1.0)


def test_the_mean_on_the_target_is_not_enough():
    """Half of the seeds miss it."""
    mean = float(advise(SMALL, 12, what_if=False).prediction.mean_cosine[-1])
    assert advise(SMALL, 12, Target(mean, 8), what_if=False).met is False
    assert advise(SMALL, 12, Target(mean + 1e-6, 8, 0.5), what_if=False).met is True


def test_the_second_time_is_read_and_a_damaged_file_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHLINES_STORE", str(tmp_path))
    first = advise(SMALL, 6)
    (file,) = (tmp_path / "advice").glob("*.msgpack")
    monkeypatch.setattr("pathlines.advice.advice._advised", None)
    assert advise(SMALL, 6).as_dict() == first.as_dict()
    with pytest.raises(TypeError):
        advise(SMALL, 7)
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(TypeError):
        advise(SMALL, 6)


def test_a_swept_knob():
    """Values of the record's prediction, one knob or two; what is no architecture is said."""
    found = sweep(SMALL, {"residual_scale": [0.25, 1.0], "logit_scale": [1.0]}, 8)
    branch = SMALL.changed(attention_residual=0.25, mlp_residual=0.25)
    assert [s.values for s in found] == [(0.25, 1.0), (1.0, 1.0)]
    assert found[0].cosine == pytest.approx(float(predict(branch, 8).mean_cosine[-1]))
    assert found[1].labels and found[1].private > 0
    (refused,) = sweep(SMALL, {"heads": [3]}, 8)
    assert refused.cosine is None and "3 heads" in refused.refused
    name, values = values_of("std=0.1:10:3")
    assert name == "std" and values == pytest.approx([0.1, 1.0, 10.0])
    for text in ("std", "std=1:2:3:4", "std=a:2", "=1:2", "std=1:2:1"):
        with pytest.raises(ArgumentError, match="--sweep takes"):
            values_of(text)
    with pytest.raises(ArgumentError, match="no knob `gain`"):
        sweep(SMALL, {"gain": [1.0]}, 8)


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
    assert "target ≤ 0.1 missed" in result.output and "what meets the target, the best first" in result.output
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


def test_two_configurations_and_a_sweep_on_the_command_line(app, tmp_path):
    one, two = tmp_path / "a.json", tmp_path / "b.json"
    one.write_text(json.dumps(CONFIG))
    two.write_text(json.dumps({**CONFIG, "initializer_range": 0.03}))
    result = CliRunner().invoke(app, [str(one), str(two), "--n", "6", "--no-what-if"])
    assert (
        result.exit_code == 0 and "`deviations.query`" in result.output and "b.json: By layer 2 of 8" in result.output
    )
    result = CliRunner().invoke(app, [str(one), str(two), "--n", "6", "--target-cosine", "0", "--json"])
    assert result.exit_code == 1 and len(msgspec.json.decode(result.stdout)["advice"]) == 2
    swept = ["--sweep", "residual_scale=0.1,1", "--n", "6"]
    result = CliRunner().invoke(app, [str(one), *swept, "--json"])
    assert len(msgspec.json.decode(result.stdout)["settings"]) == 2
    result = CliRunner().invoke(app, [str(one), *swept, "--sweep", "logit_scale=1:8:2"])
    assert "letters: R" in result.output
    for options in (["--sweep", "std=1,2", "--simulate"], [str(two), "--sweep", "std=1,2"], ["--sweep", "std=2:"]):
        result = CliRunner().invoke(app, [str(one), *options])
        assert isinstance(result.exception, ArgumentError)


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
    missed = advise(SMALL, 12, Target(0.4, 6))
    assert "is missed" in missed.summary[1] and missed.remedies[0].name in missed.summary[1]
    assert found.as_dict()["summary"] == list(found.summary)
    noted = advise({**CONFIG, "novelty": 1, "rope_scaling": None}, 6, what_if=False)
    assert any("`novelty` of config.json is not understood" in line for line in noted.assumptions)


def test_template_on_the_command_line(app, tmp_path):
    result = CliRunner().invoke(app, ["--template", "olmo2"])
    assert result.exit_code == 0 and 'placement = "output"' in result.output
    result = CliRunner().invoke(app, [])
    assert isinstance(result.exception, ArgumentError) and "--template FAMILY" in str(result.exception)
