"""GPT-NeoX (Pythia): attention and perceptron side by side, rotary positions on part of each head."""

from __future__ import annotations

from pathlines.architecture.config import Config
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture, Deviations
from pathlines.architecture.rope import rope_of


@family("gpt_neox", irrelevant="is_decoder attention_bias use_parallel_residual_mlp")
def gpt_neox(config: Config) -> Architecture:
    """One std for every matrix, as the Hugging Face module draws them."""
    std = config.number("initializer_range", 0.02)
    base, fraction = rope_of(config, "rotary_emb_base", "rotary_pct", 0.25)
    return Architecture(
        family="gpt_neox",
        width=config.integer("hidden_size", "width"),
        heads=config.integer("num_attention_heads", "number of heads"),
        layers=config.integer("num_hidden_layers", "number of layers"),
        context=config.integer("max_position_embeddings", "longest input", 2048),
        vocabulary=config.integer("vocab_size", "size of the vocabulary", 50432),
        mlp_width=config.integer("intermediate_size", "width of the perceptron"),
        activation=config.activation("hidden_act", "gelu"),
        norm="layer",
        placement="parallel" if config.flag("use_parallel_residual", True) else "pre",
        norm_epsilon=config.number("layer_norm_eps", 1e-5),
        tied=config.flag("tie_word_embeddings", False),
        mask="causal",
        positions="rope",
        rope_base=base,
        rope_fraction=fraction,
        deviations=Deviations.equal(std, mlp_gate=0.0),
    )
