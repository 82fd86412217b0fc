# Written by docs/stubs.py.
from pathlines.kernels.native import build as build
from pathlines.kernels.native import call as call
from pathlines.kernels.native import decoder as decoder
from pathlines.kernels.native import fates as fates
from pathlines.kernels.native import merging as merging
from pathlines.kernels.native.build import compiler as compiler
from pathlines.kernels.native.call import fused_attend as fused_attend
from pathlines.kernels.native.call import fused_heads as fused_heads
from pathlines.kernels.native.decoder import native_decoder as native_decoder
from pathlines.kernels.native.fates import native_fates as native_fates
from pathlines.kernels.native.build import native_library as native_library
from pathlines.kernels.native.merging import native_merging as native_merging
from pathlines.kernels.native.call import native_serves as native_serves
