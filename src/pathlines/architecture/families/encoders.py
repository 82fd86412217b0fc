"""Encoders of text and images, and the encoders of encoder-decoders: one row for each `model_type`."""

from __future__ import annotations

import math

from pathlines.architecture.convention import Convention, Draft, inverse_root, rows
from pathlines.architecture.rules import (
    absolute,
    decoder_flag,
    deviation,
    embedded_at,
    patches,
    positions_from,
    rotary,
    scale_embedding,
    seen_by_some,
    token_types,
)

BERT = Convention(
    fixed={"norm": "layer", "placement": "post", "mask": "full", "embedding_norm": True, "positions": "learned"},
    rules=(absolute, decoder_flag, token_types(2)),
)
ROBERTA = BERT.but(positions_from(2))


def _one_group(d: Draft) -> None:
    """Groups of layers share their weights; several groups, or several layers in one, are refused by name."""
    for name in ("num_hidden_groups", "inner_group_num"):
        if d.config.integer(name, "layers that differ", 1) != 1:
            d.config.refuse(name, "1: only one shared layer is understood")


def _distil(d: Draft) -> None:
    if d.config.flag("sinusoidal_pos_embds", False):
        d.config.refuse("sinusoidal_pos_embds", "false: LayerNorm takes a part of sines away")


def _esm(d: Draft) -> None:
    """Rotary or learned positions; no norm of embeddings unless asked for."""
    d.fields["embedding_norm"] = d.config.flag("emb_layer_norm_before", False)
    kind = d.config.get("position_embedding_type", "absolute")
    if kind == "rotary":
        d.fields["positions"] = "rope"
        d.deviations["position"] = 0.0
    elif kind != "absolute":
        d.config.refuse("position_embedding_type", "'absolute' or 'rotary'")


def _modern(d: Draft) -> None:
    """Normal entries cut at some standard deviations; output projections smaller by 1/√(2L)."""
    cut = d.config.number("initializer_cutoff_factor", 2.0)
    density = math.exp(-cut * cut / 2) / math.sqrt(2 * math.pi)
    share = math.erf(cut / math.sqrt(2))
    left = math.sqrt(1 - 2 * cut * density / share)
    for name in d.deviations:
        d.deviations[name] *= left
    d.scale(inverse_root(2 * d.layers), "output", "mlp_out")
    if d.config.get("local_attention") is not None and "sliding_window" not in d.config.fields:
        half = d.config.integer("local_attention", "tokens that a token sees", 128) // 2
        kinds = d.config.get("layer_types") or ["full_attention" if k % 3 == 0 else "" for k in range(d.layers)]
        seen_by_some(d, ["full" if k == "full_attention" else "local" for k in kinds[: d.layers]], half + 1)


MODERN = Convention(
    activation="hidden_activation", epsilon="norm_eps",
    fixed={"norm": "layer", "placement": "pre", "mask": "full", "gated": True, "embedding_norm": True,
           "positions": "rope"},
    rules=(rotary(), _modern),
)  # fmt: skip


def _clip(d: Draft) -> None:
    """Deviations by size: W_Q, W_K, W_V (2dL)^-1/2, W_O d^-1/2, W_1 (2d)^-1/2, W_2 (2dL)^-1/2."""
    factor, d_, deep = d.config.number("initializer_factor", 1.0), d.width, 2 * d.layers
    inner = factor * inverse_root(d_ * deep)
    d.deviations |= {"query": inner, "key": inner, "value": inner, "output": factor * inverse_root(d_),
                     "mlp_in": factor * inverse_root(2 * d_), "mlp_out": inner}  # fmt: skip
    if d.fields.get("patch_inputs"):
        d.deviations |= {"embedding": factor * d.std, "position": factor * d.std}
    else:
        d.deviations |= {"embedding": factor * 0.02, "position": factor * 0.02}


CUT = 0.87962566103423978
"""What is left of a normal deviation when tails beyond two are cut: the library divides by it and cuts nothing."""


def _siglip(d: Draft) -> None:
    """Xavier's uniform law for all matrices, LeCun's for patches; positions of deviation d^-1/2."""
    d_, inner = d.width, d.fields["mlp_width"]
    d.deviations |= dict.fromkeys(("query", "key", "value", "output"), inverse_root(d_))
    d.deviations |= dict.fromkeys(("mlp_in", "mlp_out"), math.sqrt(2 / (d_ + inner)))
    d.deviations |= {"position": inverse_root(d_), "embedding": inverse_root(d.fields["patch_inputs"]) / CUT}


VIT = Convention(
    context="", vocabulary="",
    fixed={"norm": "layer", "placement": "pre", "mask": "full", "class_token": True, "positions": "learned"},
    rules=(patches,),
)  # fmt: skip
NO_CLASS = {"class_token": False}


def _ratio(d: Draft) -> None:
    d.fields["mlp_width"] = int(d.width * d.config.number("mlp_ratio", 4))
    if d.config.flag("use_swiglu_ffn", False):
        d.config.refuse("use_swiglu_ffn", "false: the gated kind is not understood here")
    scale = d.config.number("layerscale_value", 1.0)
    d.fields |= {"attention_residual": scale, "mlp_residual": scale}


def _t5(d: Draft) -> None:
    """Deviations by size, so that logits need no factor; positions are a small bias of logits, which is left out."""
    c, factor = d.config, d.config.number("initializer_factor", 1.0)
    head, d_, inner = c.integer("d_kv", "size of a head", 64), d.width, d.fields["mlp_width"]
    root = factor * inverse_root(d_)
    kind = c.get("feed_forward_proj", "relu")
    gated = isinstance(kind, str) and kind.startswith("gated-")
    word = kind.removeprefix("gated-") if isinstance(kind, str) else kind
    known = {"relu": "relu", "gelu": "gelu", "silu": "silu", "gelu_new": "gelu"}
    if word not in known:
        c.refuse("feed_forward_proj", "relu, gelu or silu, gated- or not")
    d.fields |= {"head_dim": head, "logit_multiplier": 1.0, "gated": gated, "activation": known[word]}
    d.fields["norm_gain"] = factor
    d.deviations |= {
        "embedding": factor, "query": factor * inverse_root(d_ * head), "key": root, "value": root,
        "output": factor * inverse_root(head * d.fields["heads"]), "mlp_in": root, "mlp_gate": root if gated else 0.0,
        "mlp_out": factor * inverse_root(inner),
    }  # fmt: skip


T5 = Convention(
    width="d_model", heads="num_heads", layers="num_layers", mlp="d_ff", activation="", context="", std="",
    epsilon="layer_norm_epsilon",
    fixed={"norm": "rms", "placement": "pre", "mask": "full", "positions": "none"}, rules=(_t5,),
)  # fmt: skip
BART = Convention(
    width="d_model", heads="encoder_attention_heads", layers="encoder_layers", mlp="encoder_ffn_dim",
    activation="activation_function", std="init_std", epsilon="",
    fixed={"norm": "layer", "placement": "post", "mask": "full", "embedding_norm": True, "positions": "learned",
           "norm_epsilon": 1e-5},
    rules=(scale_embedding,),
)  # fmt: skip
PRE = {"placement": "pre"}
BARE = {"embedding_norm": False}

rows(
    {
        "bert": BERT,
        "ernie": BERT,
        "megatron-bert": BERT.but(fixed={**PRE, **BARE}),
        "bert-generation": BERT.but(lambda d: d.fields.update(types=0), lambda d: d.deviations.update(type=0.0)),
        "roberta": ROBERTA,
        "xlm-roberta": ROBERTA,
        "camembert": ROBERTA,
        "data2vec-text": ROBERTA,
        "roberta-prelayernorm": ROBERTA.but(fixed=PRE),
        "xlm-roberta-xl": ROBERTA.but(fixed={**PRE, **BARE}),
        "mpnet": ROBERTA.but(lambda d: d.fields.update(types=0), lambda d: d.deviations.update(type=0.0)),
        "albert": BERT.but(_one_group, embedded_at("embedding_size"), fixed={"shared": True}),
        "electra": BERT.but(embedded_at("embedding_size")),
        "rembert": BERT.but(embedded_at("input_embedding_size")),
        "splinter": BERT,
        "distilbert": Convention(
            width="dim", heads="n_heads", layers="n_layers", mlp="hidden_dim", activation="activation", epsilon="",
            fixed={**BERT.fixed, "norm_epsilon": 1e-12}, rules=(_distil,),
        ),
        "esm": Convention(
            activation="", fixed={"norm": "layer", "placement": "pre", "mask": "full", "activation": "gelu"},
            rules=(_esm, decoder_flag),
        ),
        "modernbert": MODERN,
        "modernbert-decoder": MODERN.but(fixed={"mask": "causal"}),
        "nomic_bert": BERT.but(rotary(), lambda d: d.deviations.update(position=0.0),
                               fixed={"gated": True, "positions": "rope"}).but(deviation()),
        "jina_embeddings_v3": BERT.but(rotary(), lambda d: d.deviations.update(position=0.0),
                                       fixed={"positions": "rope"}),
        "eurobert": Convention(
            kv_heads="num_key_value_heads", head_dim="head_dim", epsilon="rms_norm_eps",
            fixed={"norm": "rms", "placement": "pre", "mask": "full", "gated": True, "positions": "rope"},
            rules=(rotary(),),
        ),
        "clip_text_model": Convention(
            fixed={"norm": "layer", "placement": "pre", "mask": "causal", "positions": "learned"}, rules=(_clip,),
        ),
        "vit": VIT,
        "ijepa": VIT.but(fixed=NO_CLASS),
        "dinov2": VIT.but(_ratio, mlp=""),
        "clip_vision_model": VIT.but(_clip, fixed={"embedding_norm": True}),
        "siglip_vision_model": VIT.but(_siglip, fixed=NO_CLASS, std=""),
        "t5": T5,
        "mt5": T5,
        "umt5": T5,
        "bart": BART,
        "plbart": BART,
        "mbart": BART.but(fixed=PRE),
        "blenderbot": BART.but(fixed={**PRE, **BARE}),
        "blenderbot-small": BART,
    }
)  # fmt: skip
