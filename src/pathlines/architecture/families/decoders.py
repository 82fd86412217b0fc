"""Decoders: one row for each `model_type`."""

from __future__ import annotations

import math

from pathlines.architecture.convention import Convention, Draft, Rule, rows
from pathlines.architecture.rules import (
    both_branches,
    experts,
    latent,
    multiplied,
    no_rope,
    norm_on_queries_if,
    parallel_if,
    projections,
    rope_where_local,
    rotary,
    scale_embedding,
    scaled_embedding,
    windows,
)

PLAIN = Convention(fixed={"norm": "layer", "placement": "pre", "mask": "causal"})
LLAMA = Convention(
    kv_heads="num_key_value_heads", head_dim="head_dim", epsilon="rms_norm_eps",
    fixed={"norm": "rms", "placement": "pre", "mask": "causal", "gated": True, "positions": "rope"},
    rules=(rotary(),),
)  # fmt: skip


def _fixed(*names: str) -> Rule:
    """Matrices that the library draws with 0.02 whatever the configuration says."""
    return lambda d: d.deviations.update(dict.fromkeys(names, 0.02))


ROTATED = PLAIN.but(fixed={"positions": "rope"})


def _gpt2(d: Draft) -> None:
    if d.config.flag("scale_attn_by_inverse_layer_idx", False):
        d.by_layer("logit_multiplier", [_logit(d) / (k + 1) for k in range(d.layers)])
    elif not d.config.flag("scale_attn_weights", True):
        d.fields["logit_multiplier"] = 1.0


def _logit(d: Draft) -> float:
    return (d.width / d.fields["heads"]) ** -0.5 if d.config.flag("scale_attn_weights", True) else 1.0


GPT2 = PLAIN.but(
    _gpt2, projections(), width="n_embd", heads="n_head", layers="n_layer", mlp="n_inner", context="n_positions",
    activation="activation_function", epsilon="layer_norm_epsilon",
)  # fmt: skip


def _one_head(d: Draft) -> None:
    """Keys and values of one head for all (multi-query)."""
    if d.config.flag("multi_query", True):
        d.fields["kv_heads"] = 1


def _alternating(d: Draft) -> None:
    """`attention_layers`, or groups of words and how often they come."""
    listed = d.config.get("attention_layers")
    groups = d.config.get("attention_types", [])
    if listed is None or "attention_layers" not in d.config.fields:
        try:
            listed = [word for words, times in groups or () for _ in range(times) for word in words]
        except (TypeError, ValueError):
            d.config.refuse("attention_types", 'a list of groups such as [[["global", "local"], 12]]')
    size = d.config.integer("window_size", "how far back a token sees", 256)
    listed = listed if len(listed) >= d.layers else ["global", "local"] * d.layers
    d.by_layer("window", [size if word == "local" else 0 for word in listed[: d.layers]])


def _rotated_dims(d: Draft) -> None:
    head = d.width // d.fields["heads"]
    d.fields |= {"positions": "rope", "rope_fraction": min(1.0, d.config.optional("rotary_dim", "size") / head)}


def _falcon(d: Draft) -> None:
    new = d.config.flag("new_decoder_architecture", False)
    parallel = new or d.config.flag("parallel_attn", True)
    d.fields["placement"] = "parallel" if parallel else "pre"
    heads = d.fields["heads"]
    single = 1 if d.config.flag("multi_query", True) else heads
    d.fields["kv_heads"] = d.config.integer("num_kv_heads", "number of key heads", heads) if new else single
    d.fields["mlp_width"] = d.config.integer("ffn_hidden_size", "width of the perceptron", 4 * d.width) \
        if "ffn_hidden_size" in d.config.fields else 4 * d.width  # fmt: skip
    if d.config.flag("alibi", False):
        d.fields["positions"] = "alibi"


def _opt(d: Draft) -> None:
    if not d.config.flag("do_layer_norm_before", True):
        d.fields["placement"] = "post"
    if d.config.integer("word_embed_proj_dim", "width of the embeddings", d.width) != d.width:
        d.config.refuse("word_embed_proj_dim", f"the width {d.width}: projected embeddings are not understood here")


def _gemma(d: Draft) -> None:
    """Gains are stored as 1 + w with w = 0 at the start, so they are one. Embedding models see both ways."""
    scaled_embedding(d)
    d.fields["tied"] = d.config.flag("tie_word_embeddings", True)
    if d.config.flag("use_bidirectional_attention", False):
        d.fields["mask"] = "full"


def _scalar(d: Draft) -> None:
    """The logit multiplier is `query_pre_attn_scalar`^-1/2."""
    scalar = d.config.number("query_pre_attn_scalar", 256.0)
    if not 0 < scalar < math.inf:
        d.config.refuse("query_pre_attn_scalar", "a finite number > 0 (the head's size, for example 256)")
    d.fields |= {"logit_multiplier": scalar**-0.5, "logit_cap": d.config.number("attn_logit_softcapping", 0.0)}


def _gelu_of_gemma(d: Draft) -> None:
    d.fields["activation"] = d.config.activation("hidden_activation", d.config.get("hidden_act", "gelu_pytorch_tanh"))


GEMMA = LLAMA.but(_gelu_of_gemma, _gemma, activation="")
GEMMA2 = GEMMA.but(_scalar, fixed={"placement": "sandwich"})


def _sinks(d: Draft) -> None:
    """Rows have a key of logit near 0 without a value; gates are gσ(1.702 g), their partners are shifted by one."""
    d.fields |= {"sinks": True, "gate_shift": 1.0, "activation": "quick_gelu"}
    if abs(d.config.number("swiglu_alpha", 1.702) - 1.702) > 1e-6:
        d.config.refuse("swiglu_alpha", "1.702")


def _minicpm(d: Draft) -> None:
    scale = d.config.number("scale_depth", 1.4) / math.sqrt(d.layers)
    d.fields |= {"attention_residual": scale, "mlp_residual": scale}


def _mpt(d: Draft) -> None:
    attention = d.config.section("attn_config")
    if attention.get("alibi", True) is False:
        d.fields["positions"] = "learned"
        d.deviations["position"] = d.std
    d.fields["mlp_width"] = int(d.config.number("expansion_ratio", 4) * d.width)
    d.fields["activation"] = "gelu"


def _nanochat(d: Draft) -> None:
    """Norms of embeddings, of queries and of keys."""
    d.fields |= {"embedding_norm": True, "qk_norm": True}


def _granite(d: Draft) -> None:
    d.fields["logit_multiplier"] = d.config.number("attention_multiplier", 1.0)


GRANITE = LLAMA.but(_granite, multiplied(embedding_scale="embedding_multiplier"), both_branches("residual_multiplier"))
QWEN_WINDOWS = windows(default=False)
LATENT = LLAMA.but(latent, kv_heads="", head_dim="")
OLMO2 = LLAMA.but(fixed={"placement": "output", "qk_norm": True})

rows(
    {
        "gpt2": GPT2,
        "gpt_bigcode": GPT2.but(_one_head),
        "gpt_neo": PLAIN.but(
            _alternating, heads="num_heads", layers="num_layers", activation="activation_function",
            epsilon="layer_norm_epsilon", fixed={"logit_multiplier": 1.0},
        ),
        "gptj": PLAIN.but(
            _rotated_dims, width="n_embd", heads="n_head", layers="n_layer", mlp="n_inner", context="n_positions",
            activation="activation_function", epsilon="layer_norm_epsilon", fixed={"placement": "parallel"},
        ),
        "codegen": PLAIN.but(
            _rotated_dims, width="n_embd", heads="n_head", layers="n_layer", mlp="n_inner", context="n_positions",
            activation="activation_function", epsilon="layer_norm_epsilon", fixed={"placement": "parallel"},
        ),
        "openai-gpt": PLAIN.but(
            _fixed("query", "key", "value", "output", "mlp_in", "mlp_out"),
            lambda d: d.fields.update(mlp_width=4 * d.width),
            width="n_embd", heads="n_head", layers="n_layer", mlp="", context="n_positions", activation="afn",
            epsilon="layer_norm_epsilon", fixed={"placement": "post"},
        ),
        "imagegpt": GPT2.but(_fixed("query", "key", "value", "mlp_in"), fixed={"norm": "rms"}),
        "gpt_neox": ROTATED.but(
            rotary(0.25, "rotary_emb_base", "rotary_pct"), parallel_if("use_parallel_residual"),
        ),
        "opt": PLAIN.but(_opt, mlp="ffn_dim", activation="activation_function", std="init_std", epsilon="",
                         fixed={"norm_epsilon": 1e-5}),
        "bloom": PLAIN.but(
            lambda d: d.fields.update(mlp_width=4 * d.width), heads="n_head", layers="n_layer", mlp="", activation="",
            context="", epsilon="layer_norm_epsilon",
            fixed={"positions": "alibi", "embedding_norm": True, "activation": "gelu"},
        ),
        "falcon": ROTATED.but(rotary(), _falcon, mlp="", activation="activation", epsilon="layer_norm_epsilon"),
        "mpt": PLAIN.but(_mpt, width="d_model", heads="n_heads", layers="n_layers", mlp="", activation="",
                         context="max_seq_len", epsilon="layer_norm_epsilon", fixed={"positions": "alibi"}),
        "phi": ROTATED.but(rotary(0.5), norm_on_queries_if("qk_layernorm"), kv_heads="num_key_value_heads",
                           fixed={"placement": "parallel"}),
        "phi3": LLAMA.but(windows(), head_dim=""),
        "persimmon": ROTATED.but(rotary(0.5), norm_on_queries_if("qk_layernorm")),
        "biogpt": PLAIN.but(scale_embedding),
        "llama": LLAMA,
        "arcee": LLAMA.but(fixed={"gated": False}),
        "seed_oss": LLAMA,
        "ernie4_5": LLAMA,
        "hunyuan_v1_dense": LLAMA.but(fixed={"qk_norm": True}),
        "helium": LLAMA,
        "mistral": LLAMA.but(windows()),
        "ministral": LLAMA.but(windows()),
        "mixtral": LLAMA.but(windows(), experts("num_local_experts|num_experts")),
        "qwen2": LLAMA.but(QWEN_WINDOWS, head_dim=""),
        "qwen3": LLAMA.but(QWEN_WINDOWS, fixed={"qk_norm": True}),
        "qwen3_moe": LLAMA.but(
            QWEN_WINDOWS,
            experts("num_local_experts|num_experts", width="moe_intermediate_size", shares="norm_topk_prob",
                    dense="step"),
            fixed={"qk_norm": True},
        ),
        "olmo": LLAMA.but(fixed={"norm": "layer", "norm_epsilon": 1e-5}, epsilon="", head_dim=""),
        "olmo2": OLMO2.but(head_dim=""),
        "olmo3": OLMO2.but(windows(every=4), head_dim=""),
        "olmoe": LLAMA.but(
            experts("num_experts|num_local_experts", shares="norm_topk_prob"), fixed={"qk_norm": True}, head_dim="",
        ),
        "exaone4": OLMO2.but(windows(every=4), fixed={"qk_norm": True}),
        "gemma": GEMMA,
        "gemma2": GEMMA2.but(windows(every=2)),
        "vaultgemma": GEMMA2.but(windows(every=2), fixed={"placement": "pre"}),
        "gemma3_text": GEMMA2.but(windows(every=6), fixed={"qk_norm": True}),
        "starcoder2": ROTATED.but(rotary(), windows(), kv_heads="num_key_value_heads", epsilon="norm_epsilon"),
        "stablelm": LLAMA.but(
            rotary(0.25), parallel_if("use_parallel_residual"), norm_on_queries_if("qk_layernorm"),
            fixed={"norm": "layer"}, epsilon="layer_norm_eps", head_dim="",
        ),
        "cohere": LLAMA.but(norm_on_queries_if("use_qk_norm"), fixed={"norm": "layer", "placement": "parallel"},
                            epsilon="layer_norm_eps", head_dim=""),
        "cohere2": LLAMA.but(windows(every=4), rope_where_local, fixed={"norm": "layer", "placement": "parallel"},
                             epsilon="layer_norm_eps"),
        "granite": GRANITE.but(head_dim=""),
        "granitemoe": GRANITE.but(experts("num_local_experts|num_experts"), head_dim=""),
        "granitemoeshared": GRANITE.but(
            experts("num_local_experts|num_experts", shared="shared_intermediate_size"), head_dim=""
        ),
        "glm": LLAMA.but(rotary(0.5)),
        "glm4": LLAMA.but(rotary(0.5), fixed={"placement": "sandwich"}),
        "smollm3": LLAMA.but(no_rope, QWEN_WINDOWS, head_dim=""),
        "nemotron": ROTATED.but(rotary(0.5), fixed={"norm_gain": 2.0},
                                kv_heads="num_key_value_heads", head_dim="head_dim", epsilon="norm_eps"),
        "nanochat": LLAMA.but(_nanochat, projections(("output",)), fixed={"gated": False}, head_dim=""),
        "minicpm3": LATENT.but(_minicpm, multiplied(embedding_scale="scale_emb")),
        "deepseek_v2": LATENT.but(
            experts("n_routed_experts|num_experts", width="moe_intermediate_size", shared="n_shared_experts",
                    shares=False, dense="first", scale="routed_scaling_factor"),
        ),
        "deepseek_v3": LATENT.but(
            experts("n_routed_experts|num_local_experts", width="moe_intermediate_size", shared="n_shared_experts",
                    shares="norm_topk_prob", dense="first", scale="routed_scaling_factor", score="sigmoid"),
        ),
        "gpt_oss": LLAMA.but(
            windows(every=2), _sinks, experts("num_local_experts|num_experts"), activation="",
        ),
    }
)  # fmt: skip
