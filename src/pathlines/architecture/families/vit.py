"""ViT: image patches through one linear map, a class token, learned positions, pre-normalisation, no mask."""

from __future__ import annotations

from pathlines.architecture.config import Config
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture, Deviations


@family("vit", irrelevant="is_decoder qkv_bias encoder_stride pooler_act pooler_output_size")
def vit(config: Config) -> Architecture:
    """Tokens are the patches and the class token; pixels are taken to have mean square one."""
    std = config.number("initializer_range", 0.02)
    image, patch = config.integer("image_size", "pixels a side", 224), config.integer("patch_size", "pixels a side", 16)
    if image % patch:
        config.refuse("patch_size", f"a divisor of image_size = {image}")
    return Architecture(
        family="vit",
        width=config.integer("hidden_size", "width"),
        heads=config.integer("num_attention_heads", "number of heads"),
        layers=config.integer("num_hidden_layers", "number of layers"),
        context=(image // patch) ** 2 + 1,
        mlp_width=config.integer("intermediate_size", "width of the perceptron"),
        activation=config.activation("hidden_act", "gelu"),
        norm="layer",
        placement="pre",
        norm_epsilon=config.number("layer_norm_eps", 1e-12),
        patch_inputs=config.integer("num_channels", "colours", 3) * patch**2,
        class_token=True,
        mask="full",
        positions="learned",
        deviations=Deviations.equal(std, mlp_gate=0.0, position=std),
    )
