"""Attention among unit vectors by harmonics: O(n) with a rigorous error bound."""

from pathlines.kernels.spectral.attend import spectral_attend as spectral_attend
from pathlines.kernels.spectral.bessel import admissible as admissible
from pathlines.kernels.spectral.bessel import coefficients as coefficients
from pathlines.kernels.spectral.bessel import degree as degree
from pathlines.kernels.spectral.bessel import noise_floor as noise_floor
from pathlines.kernels.spectral.cost import spectral_cost as spectral_cost
from pathlines.kernels.spectral.potential import circle_modes as circle_modes
from pathlines.kernels.spectral.potential import circle_potential as circle_potential
