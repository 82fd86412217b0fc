"""A wheel that carries compiled kernels says for which machines it is; one without them is for all."""

import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src/pathlines/kernels/native/prebuilt")


class Kernels(BuildHookInterface):
    """The name of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tag it with this kind of machine where kernels were compiled (``make wheel``)."""
        if version == "standard" and any(Path(self.root, KERNELS).glob("*.so")):
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform.system().lower()}_{platform.machine()}"
