"""BERT and its relatives: post-normalisation, normalised embeddings, learned positions, one std for all matrices.

RoBERTa has one token type; MPNet none, and a relative position bias on the logits of that same small std, which is left
out; ALBERT shares one layer and projects embeddings of a smaller width. BERT adds the embedding of type 0 to every
token: of three equal powers one is common, so its tokens start at cosine 1/3.
"""

from __future__ import annotations

from pathlines.architecture.config import Config
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture, Deviations


def _encoder(config: Config, family: str, types: int, offset: int = 0) -> Architecture:
    """``offset`` rows of the position table lie before the first position."""
    if config.get("position_embedding_type", "absolute") != "absolute":
        config.refuse("position_embedding_type", "'absolute'")
    std = config.number("initializer_range", 0.02)
    context = config.integer("max_position_embeddings", "longest input", 512) - offset
    return Architecture(
        family=family,
        width=config.integer("hidden_size", "width"),
        heads=config.integer("num_attention_heads", "number of heads"),
        layers=config.integer("num_hidden_layers", "number of layers"),
        context=context,
        vocabulary=config.integer("vocab_size", "size of the vocabulary", 30522),
        mlp_width=config.integer("intermediate_size", "width of the perceptron"),
        activation=config.activation("hidden_act", "gelu"),
        norm="layer",
        placement="post",
        norm_epsilon=config.number("layer_norm_eps", 1e-12),
        embedding_norm=True,
        types=types,
        tied=config.flag("tie_word_embeddings", True),
        mask="causal" if config.flag("is_decoder", False) else "full",
        positions="learned",
        deviations=Deviations.equal(std, mlp_gate=0.0, position=std, type=std if types else 0.0),
    )


_POOLER = """directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head
    pooler_type"""


@family("bert", irrelevant=_POOLER)
def bert(config: Config) -> Architecture:
    """Two token types by default."""
    return _encoder(config, "bert", config.integer("type_vocab_size", "number of token types", 2))


@family("roberta", "xlm-roberta", "camembert")
def roberta(config: Config) -> Architecture:
    """Positions start after the padding index, so two rows of the table are never reached."""
    return _encoder(config, "roberta", config.integer("type_vocab_size", "number of token types", 1), offset=2)


@family("mpnet", irrelevant="relative_attention_num_buckets")
def mpnet(config: Config) -> Architecture:
    """No token types."""
    return _encoder(config, "mpnet", 0, offset=2)


@family("albert", irrelevant="net_structure_type num_memory_blocks gap_size down_scale_factor layers_to_keep")
def albert(config: Config) -> Architecture:
    """Groups of layers share their weights; several groups, or several layers in one, are refused by name."""
    for name in ("num_hidden_groups", "inner_group_num"):
        if config.integer(name, "layers that differ", 1) != 1:
            config.refuse(name, "1: only one shared layer is understood")
    types = config.integer("type_vocab_size", "number of token types", 2)
    encoder = _encoder(config, "albert", types)
    projection = encoder.deviations.query
    return encoder.changed(
        shared=True,
        embedding_width=config.integer("embedding_size", "width of the embeddings", 128),
        deviations={"projection": projection},
    )
