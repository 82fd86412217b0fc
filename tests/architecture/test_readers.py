"""Configurations of every family, TOML, six numbers; what is wrong is said in one line."""

import json
import math
from contextlib import suppress

import pytest
from public_configs import PUBLIC

from pathlines.architecture import Architecture, Deviations, from_numbers, read_architecture, read_text
from pathlines.architecture.config import Config
from pathlines.architecture.convention import defaults
from pathlines.architecture.family import FAMILIES
from pathlines.architecture.harmless import harmless
from pathlines.architecture.read import from_config
from pathlines.architecture.template import template
from pathlines.foundation.errors import ArgumentError, UnknownNameError

BERT = {"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
        "intermediate_size": 3072, "type_vocab_size": 2, "vocab_size": 30522}  # fmt: skip
LLAMA = {"model_type": "llama", "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3,
         "num_hidden_layers": 30, "intermediate_size": 1536, "vocab_size": 49152, "rms_norm_eps": 1e-5}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}


def architecture(fields, **changes):
    return from_config({**fields, **changes}).architecture


def test_bert_family():
    bert = architecture(BERT)
    assert (bert.placement, bert.mask, bert.norm, bert.embedding_norm) == ("post", "full", "layer", True)
    assert bert.deviations.type == bert.deviations.position == 0.02 and bert.deviations.mlp_gate == 0
    assert architecture(BERT, model_type="mpnet").types == 0
    assert architecture(BERT, model_type="roberta", max_position_embeddings=514).context == 512
    assert architecture(BERT, is_decoder=True).mask == "causal"
    albert = architecture(BERT, model_type="albert", embedding_size=128)
    assert albert.shared and albert.embedding_width == 128 and albert.deviations.projection == 0.02


def test_gpt2_scales_its_projections():
    gpt2 = architecture(GPT2, n_inner=None)
    assert gpt2.mlp_width == 3072 and gpt2.mask == "causal" and gpt2.activation == "gelu"
    assert gpt2.deviations.output == gpt2.deviations.mlp_out == pytest.approx(0.02 / math.sqrt(24))
    assert gpt2.logit_multiplier == pytest.approx(1 / 8)
    assert architecture(GPT2, scale_attn_weights=False).logit_multiplier == 1


def test_decoders_of_the_llama_kind():
    llama = architecture(LLAMA)
    assert (llama.kv_heads, llama.head_dim, llama.gated, llama.norm) == (3, 64, True, "rms")
    assert architecture(LLAMA, model_type="mistral", sliding_window=4096).window == 4096
    assert architecture(LLAMA, model_type="qwen2", sliding_window=4096).window == 0
    assert architecture(LLAMA, model_type="qwen3", head_dim=128).qk_norm
    gemma = architecture(LLAMA, model_type="gemma", head_dim=256)
    assert gemma.embedding_scale == 24 and gemma.activation == "gelu" and gemma.attention_width == 9 * 256
    second = architecture(LLAMA, model_type="gemma2", query_pre_attn_scalar=144, attn_logit_softcapping=50.0)
    assert (second.placement, second.logit_cap, second.logit_multiplier) == ("sandwich", 50.0, 1 / 12)
    assert architecture(LLAMA, model_type="gemma3_text").qk_norm
    assert architecture(LLAMA, model_type="gemma3_text", use_bidirectional_attention=True).mask == "full"
    newer = architecture(LLAMA, rope_parameters={"rope_theta": 5e5, "rope_type": "default"})
    assert newer.rope_base == 5e5


def test_neox_and_vit():
    fields = {k: v for k, v in LLAMA.items() if k not in ("num_key_value_heads", "rms_norm_eps")}
    neox = architecture(fields, model_type="gpt_neox", rotary_pct=0.25)
    assert neox.placement == "parallel" and neox.rope_fraction == 0.25
    assert architecture(fields, model_type="gpt_neox", use_parallel_residual=False).placement == "pre"
    vit = architecture(BERT, model_type="vit", image_size=224, patch_size=16)
    assert (vit.context, vit.patch_inputs, vit.class_token, vit.mask) == (197, 768, True, "full")


def test_unknown_fields_are_named():
    reading = from_config({**LLAMA, "hidden_dropout_prob": 0.1, "torch_dtype": "float32", "mixture_of_depths": 3})
    assert reading.unknown == ("mixture_of_depths",)
    assert set(reading.irrelevant) == {"model_type", "hidden_dropout_prob", "torch_dtype"}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_configurations_are_understood_whole(name):
    """Nothing but what does not belong there is unknown."""
    reading = from_config({**PUBLIC[name], "mixture_of_depths": 3})
    assert reading.unknown == ("mixture_of_depths",) and reading.fields["mixture_of_depths"] == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**LLAMA, "hidden_size": None}, 'no `hidden_size` .width.; write for example "hidden_size": 768'),
        ({**LLAMA, "num_attention_heads": 7, "num_key_value_heads": 7}, "7 heads do not divide the width 576; write"),
        ({**LLAMA, "hidden_act": ["silu"]}, r"`hidden_act` must be one of .*, but is \['silu'\]"),
        ({**LLAMA, "initializer_range": 1e200}, "deviations.embedding` must be a finite number ≥ 0 and ≤ 1e.06"),
        ({**LLAMA, "rope_scaling": {"rope_type": 5}}, "rope_scaling: `rope_type` must be a word, but is 5"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": None}}, "`factor` must be a number for linear scaling"),
        ({**LLAMA, "rope_parameters": [1]}, "`rope_parameters` must be an object"),
        ({**LLAMA, "rope_parameters": {"rope_theta": "a"}}, "rope_parameters: `rope_theta` must be a number"),
        ({**LLAMA, "rope_parameters": {"full_attention": "a"}}, "`full_attention` must be an object"),
        ({**LLAMA, "model_type": "gemma2", "query_pre_attn_scalar": 0}, "`query_pre_attn_scalar` must be a finite"),
        ({**LLAMA, "model_type": "mamba"}, "'mamba', which is not predicted: its layers are state-space models"),
        ({**LLAMA, "model_type": "jamba"}, "'jamba', which is not predicted: it mixes attention with state-space"),
        ({**LLAMA, "model_type": "novel"}, "`model_type` 'novel'; known are albert, arcee.*--template llama"),
        ({**LLAMA, "model_type": "qwen2", "layer_types": ["full_attention"]}, "`layer_types` must be a list of 30"),
        ({"hidden_size": 64}, "`model_type` None"),
        ({**LLAMA, "initializer_range": -0.02}, "`initializer_range` must be a number ≥ 0, but is -0.02"),
        ({**LLAMA, "hidden_act": "mish"}, "`hidden_act` must be one of gelu"),
        ({**LLAMA, "num_hidden_layers": 2.5}, "must be an integer ≥ 1"),
        ({**BERT, "model_type": "albert", "num_hidden_groups": 3}, "`num_hidden_groups` must be 1"),
        ([1, 2], "must hold an object"),
    ],
)  # fmt: skip
def test_errors_of_a_config_are_one_line(fields, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        from_config(fields)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("config.json")


def test_files(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ArgumentError, match=r"There is no file .*config\.json"):
        read_architecture(folder)
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert read_architecture(folder).architecture == architecture(LLAMA)
    (folder / "config.json").write_text('{"model_type": "llama", ')
    with pytest.raises(ArgumentError, match="not valid JSON at line 1, column"):
        read_architecture(folder)


def test_toml(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('width = 64\nheads = 4\nlayers = 3\nstd = 0.1\nplacement = "post"\n[deviations]\nembedding = 1.0\n')
    found = read_architecture(file).architecture
    assert found.deviations == Deviations.equal(0.1, embedding=1.0, position=0.1, mlp_gate=0.0)
    for text, message in {
        "heads = 4\nlayers = 3\nstd = 0.1": "no `width`; write for example width = 768",
        "width = 64\nheads = 4\nlayers = 3": "no `std`",
        "width = 64\nheads = 4\nlayers = 3\nstd = 0.1\nwidht = 3": "unknown field `widht`",
        "width = 64\nheads = 4\nlayers = 3\nstd = -0.1": "`std` must be a finite number ≥ 0",
        "width = ": "not valid TOML",
        "width = 64.5\nheads = 4\nlayers = 3\nstd = 0.1": "mine.toml: Setting `width` .* must be a int, but is 64.5",
        "width = 64\nheads = 4\nlayers = 3\nstd = 0.1\n[deviations]\nembeding = 1": "mine.toml: .* setting `embeding`",
        "width = 64\nheads = 4\nlayers = 3\nstd = 0.1\ndeviations = 3": "`deviations` must be a table",
        "width = 64\nheads = 4\nlayers = 3\nstd = 0.1\ntypes = 'a'": "`types` .* must be a int, but is 'a'",
        "width = 64\nheads = 4\nlayers = 3\nstd = true": "mine.toml: Setting `std`",
        "width = 64\nheads = 4\nlayers = 3\nstd = 0.1\nplacement = 'mid'": "but is 'mid'.$",
    }.items():
        file.write_text(text)
        with pytest.raises(ArgumentError, match=message):
            read_architecture(file)


def test_a_text_is_read_by_what_it_is():
    six = from_numbers([64, 4, 2, 32, 128, 0.02]).architecture
    assert read_text("64, 4 2 32 128 .02").architecture == six
    table = "width = 64\nheads = 4\nlayers = 2\ncontext = 32\nmlp_width = 128\nstd = 0.02\nnorm_epsilon = 1e-5\n"
    assert read_text(table + "[deviations]\nposition = 0.02\nmlp_gate = 0.0\n").architecture == six
    config = '\ufeff {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2}'
    assert read_text(config).architecture.family == "gpt2"
    for text in ("", "{", "nan 4 2 32 128 .02", "1 2 3", "[" * 10_000):
        with pytest.raises(ArgumentError):
            read_text(text)


def test_six_numbers():
    found = from_numbers([768, 12, 12, 1024, 3072, 0.02]).architecture
    assert (found.width, found.context, found.mlp_width, found.placement) == (768, 1024, 3072, "pre")
    for values, message in [([768, 12], "there are 2"), ([768, 12, 12, 1024, 3072, -1], "`std` must be"),
                            ([768, 12.5, 12, 1024, 3072, 0.02], "`heads` must be an integer")]:  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            from_numbers(values)


def test_changes_keep_what_was_derived():
    llama = architecture(LLAMA)
    wider = llama.changed(width=1152, heads=18, kv_heads=6)
    assert wider.head_dim == 64
    fewer = llama.changed(heads=3)
    assert fewer.head_dim == 192 and fewer.logit_multiplier == pytest.approx(192**-0.5) and fewer.kv_heads == 3
    assert llama.changed(deviations={"embedding": 1.0}).deviations.query == 0.02
    with pytest.raises(UnknownNameError, match="no setting `depth`"):
        llama.changed(depth=3)
    with pytest.raises(ArgumentError, match="be one of 'pre', 'post'"):
        llama.changed(placement="middle")


def small(name, **changes):
    """A configuration of the family by the names of its row."""
    row = FAMILIES[name].row
    fields = {"model_type": name, row.width: 64, row.heads: 4, row.layers: 8, **changes}
    return {**fields, row.mlp: 128} if row.mlp else fields


def test_every_family_reads_a_config():
    assert len(FAMILIES) >= 45
    for name in FAMILIES:
        found = from_config(small(name)).architecture
        assert isinstance(found, Architecture) and found.deviations.query > 0, name


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_field_of_the_library_is_read_or_harmless_or_named(name):
    """Whatever a field is changed to, it is consumed, known to be harmless with a reason, or named to the user."""
    usual = defaults()[name]
    assert usual, "the library's own values are on file"
    given = small(name)
    for field, value in usual.items():
        if field in given:
            continue
        changed = not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else "other"
        config = Config({**given, field: changed}, "config.json", usual)
        with suppress(ArgumentError):  # refused by name is named
            FAMILIES[name].read(config)
            named = " ".join(config.leftover()[1])
            assert config.fetched(field) or harmless(field) or f"`{field}`" in named, field


def test_every_harmless_field_has_a_reason():
    assert harmless("attention_bias").startswith("biases") and harmless("hidden_size") is None
    assert harmless("attn_pdrop") and harmless("rope_interleave").startswith("rotations")


def test_a_field_that_is_left_out_is_named():
    found = from_config({**small("deepseek_v3"), "n_group": 4, "moe_intermediate_size": 32, "num_hidden_layers": 4})
    assert any("`n_group` = 4 is left out, as if it were 8" in note for note in found.assumed)


def test_layers_that_differ():
    """Windows, positions and experts layer by layer, as the library builds them."""
    qwen = architecture({**LLAMA, "model_type": "qwen2", "use_sliding_window": True, "sliding_window": 7,
                         "max_window_layers": 28})  # fmt: skip
    assert [a.window for a in qwen.each_layer(30)] == [0] * 28 + [7] * 2
    gemma = architecture({**LLAMA, "model_type": "gemma3_text", "sliding_window": 9, "head_dim": 64})
    assert [a.window for a in gemma.each_layer(7)] == [9] * 5 + [0, 9]
    assert gemma.each_layer(6)[0].rope_base == 1e4 and gemma.each_layer(6)[5].rope_base == 1e6
    second = architecture({**LLAMA, "model_type": "gemma2", "sliding_window": 9, "head_dim": 64})
    assert [a.window for a in second.each_layer(3)] == [9, 0, 9]
    named = architecture({**LLAMA, "num_hidden_layers": 2, "model_type": "mistral", "sliding_window": 5})
    assert [a.window for a in named.each_layer(2)] == [5, 5] and named.by_layer == {}
    smol = architecture({**LLAMA, "model_type": "smollm3"})
    assert [a.positions for a in smol.each_layer(4)] == ["rope"] * 3 + ["none"]
    deep = architecture({**small("deepseek_v3"), "moe_intermediate_size": 32, "first_k_dense_replace": 2})
    assert [(a.experts, a.mlp_width) for a in deep.each_layer(3)] == [(0, 128), (0, 128), (256, 32)]
    neo = architecture({**small("gpt_neo"), "attention_types": [[["global", "local"], 4]], "window_size": 3})
    assert [a.window for a in neo.each_layer(2)] == [0, 3] and neo.logit_multiplier == 1


def test_lists_by_layer():
    base = Architecture(width=64, heads=4, layers=4, deviations=Deviations.equal(0.1), by_layer={"window": [3, 0]})
    assert [a.window for a in base.each_layer(5)] == [3, 0, 3, 0, 3]
    assert base.changed(window=2).by_layer == {} and base.changed(layers=2).by_layer == {"window": (3, 0)}
    for by_layer, message in [
        ({"width": [3]}, "has `width`"),
        ({"window": []}, "by_layer.window"),
        ({"window": [-1]}, "`window` must be an integer"),
        ({"heads": [3]}, "heads"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            base.changed(by_layer=by_layer)


def test_models_of_several_parts():
    """The text of a model that also sees is read, and the output says so."""
    found = from_config({"model_type": "llava", "text_config": LLAMA, "vision_config": small("clip_vision_model")})
    assert found.architecture.family == "llama" and "of llava the part `text_config` is read" in found.assumed[0]


@pytest.mark.parametrize("name", list(FAMILIES))
def test_template_is_what_the_library_takes(name, tmp_path):
    """What is written is read back as the record it was written from."""
    file = tmp_path / "model.toml"
    file.write_text(template(name))
    found = read_architecture(file).architecture
    assert found.family == name and found == found.changed() and found.layers > 1
    with pytest.raises(UnknownNameError, match="no family `novel`"):
        template("novel")
