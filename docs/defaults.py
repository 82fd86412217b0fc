"""Write src/pathlines/architecture/defaults.json: the library's own value of every field of the model types we read.

Needs transformers; values that only say how to run or generate are left out.
"""

import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
OUT = Path(__file__).parents[1] / "src/pathlines/architecture/defaults.json"


def usual(name):
    """Fields of the class with their values, without those of every configuration."""
    from transformers import PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    common = PretrainedConfig().to_dict()
    fields, other = CONFIG_MAPPING[name]().to_dict(), _changed(CONFIG_MAPPING[name])
    kept = {k: v for k, v in fields.items() if k not in common and k not in ("model_type", "transformers_version")}
    return {k: v if k in SIZES or other.get(k) == v else None for k, v in sorted(kept.items())}


def _changed(kind):
    """The fields of one of other sizes: what differs there follows from the sizes and has no usual value."""
    sizes = {name: 3 * value for name, value in SIZES.items() if name in kind().to_dict()}
    try:
        return kind(**sizes).to_dict()
    except Exception:
        return kind().to_dict()


SIZES = {"hidden_size": 64, "d_model": 64, "n_embd": 64, "num_attention_heads": 4, "n_head": 4, "num_hidden_layers": 5,
         "n_layer": 5, "num_layers": 5, "num_heads": 4, "dim": 64, "n_heads": 4, "n_layers": 5}  # fmt: skip

if __name__ == "__main__":
    from pathlines.architecture.family import FAMILIES

    text = json.dumps({name: usual(name) for name in sorted(FAMILIES)}, indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(OUT.read_text() != text)
    OUT.write_text(text)
