"""GPT-2: pre-normalisation, learned positions, output projections smaller by 1/√(2L)."""

from __future__ import annotations

import math

from pathlines.architecture.config import Config
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture, Deviations


@family("gpt2", irrelevant="is_decoder n_ctx reorder_and_upcast_attn resid_pdrop embd_pdrop attn_pdrop")
def gpt2(config: Config) -> Architecture:
    """`n_inner` null is four times the width."""
    if config.flag("scale_attn_by_inverse_layer_idx", False):
        config.refuse("scale_attn_by_inverse_layer_idx", "false: one logit multiplier serves every layer")
    std = config.number("initializer_range", 0.02)
    width = config.integer("n_embd", "width")
    layers = config.integer("n_layer", "number of layers")
    projection = std / math.sqrt(2 * layers)
    return Architecture(
        family="gpt2",
        width=width,
        heads=config.integer("n_head", "number of heads"),
        layers=layers,
        context=config.integer("n_positions", "longest input", 1024),
        vocabulary=config.integer("vocab_size", "size of the vocabulary", 50257),
        mlp_width=config.integer("n_inner", "width of the perceptron", 4 * width),
        activation=config.activation("activation_function", "gelu_new"),
        norm="layer",
        placement="pre",
        norm_epsilon=config.number("layer_norm_epsilon", 1e-5),
        tied=config.flag("tie_word_embeddings", True),
        logit_multiplier=0.0 if config.flag("scale_attn_weights", True) else 1.0,
        mask="causal",
        positions="learned",
        deviations=Deviations.equal(std, output=projection, mlp_out=projection, mlp_gate=0.0, position=std),
    )
