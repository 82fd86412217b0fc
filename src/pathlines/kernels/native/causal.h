// Causal attention on the circle by prefix sums of Fourier modes, and its transposed Jacobian by suffix sums: O(NK).
//
// With positional weights p_jk = e^{-(j-k) rate}/Z_j for k < j and w(x) = I_0 + 2 sum_m I_m cos mx,
//   E_j = sum_k p_jk w(t_j - t_k),   E_j', E_j'' its derivatives in t_j,
//   speed = E' (unnormalised) or E'/(beta E) (softmax).
// V is a number or a vector of prompts side by side.

#ifndef PATHLINES_CAUSAL_H_
#define PATHLINES_CAUSAL_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int kPrompts = 8;
typedef double Side __attribute__((vector_size(8 * kPrompts)));
typedef int64_t SideInts __attribute__((vector_size(8 * kPrompts)));

inline void turn(double x, double* c, double* s) {
  *c = std::cos(x);
  *s = std::sin(x);
}

// Reduced by multiples of pi/2 in three parts, then Taylor series on [-pi/4, pi/4], exact to rounding for |x| < 1e5.
inline void turn(Side x, Side* c, Side* s) {
  const double magic = 6755399441055744.0;
  const Side shifted = x * 0.63661977236758134308 + magic;
  const Side k = shifted - magic;
  const SideInts quadrant = (SideInts)shifted;
  const Side r = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
  const Side z = r * r;
  Side even = z * (-1.0 / 87178291200.0) + 1.0 / 479001600.0, odd = z * (-1.0 / 1307674368000.0) + 1.0 / 6227020800.0;
  even = even * z - 1.0 / 3628800.0;
  even = even * z + 1.0 / 40320.0;
  even = even * z - 1.0 / 720.0;
  even = even * z + 1.0 / 24.0;
  even = 1.0 - z * (0.5 - z * even);
  odd = odd * z - 1.0 / 39916800.0;
  odd = odd * z + 1.0 / 362880.0;
  odd = odd * z - 1.0 / 5040.0;
  odd = odd * z + 1.0 / 120.0;
  odd = odd * z - 1.0 / 6.0;
  odd = r + r * z * odd;
  const SideInts swapped = (quadrant & 1) != 0, sine_down = (quadrant & 2) != 0, cosine_down = ((quadrant + 1) & 2) != 0;
  const Side sine = swapped ? even : odd, cosine = swapped ? odd : even;
  *s = sine_down ? -sine : sine;
  *c = cosine_down ? -cosine : cosine;
}

struct Attention {
  int64_t n, modes;
  const double* bessel;   // I_0 .. I_K
  const double* inverse;  // 1/Z_j, 0 for a token that sees nobody
  double decay, beta;
  bool softmax;
};

// What the transposed Jacobian needs of one evaluation.
template <typename V>
struct Trace {
  std::vector<V> at, slope, speed, scale;
  explicit Trace(int64_t n, bool softmax) : at(n), slope(n), speed(softmax ? n : 0), scale(softmax ? n : 0) {}
};

template <typename V>
void speeds(const Attention& a, const V* at, V* speed, Trace<V>* trace, std::vector<V>& sums) {
  sums.assign(2 * (a.modes + 1), V{});
  for (int64_t j = 0; j < a.n; ++j) {
    V c1, s1, c = V{} + 1.0, s = V{}, e0 = V{}, e1 = V{}, e2 = V{};
    turn(at[j], &c1, &s1);
    for (int64_t m = 1; m <= a.modes; ++m) {
      V &re = sums[2 * m], &im = sums[2 * m + 1];
      const V next = c * c1 - s * s1;
      s = s * c1 + c * s1;
      c = next;
      const V even = (c * re - s * im) * (2 * a.bessel[m]), odd = (s * re + c * im) * (2 * a.bessel[m] * m);
      e0 += even;
      e1 -= odd;
      e2 -= even * double(m * m);
      re = (re + c) * a.decay;
      im = (im - s) * a.decay;
    }
    const V first = e1 * a.inverse[j], second = e2 * a.inverse[j];
    if (!a.softmax) {
      speed[j] = first;
      if (trace) trace->slope[j] = second;
    } else {
      const V scale = 1.0 / (a.beta * (a.bessel[0] + e0 * a.inverse[j]));
      speed[j] = first * scale;
      if (trace) {
        trace->slope[j] = second * scale - a.beta * speed[j] * speed[j];
        trace->scale[j] = scale;
        trace->speed[j] = speed[j];
      }
    }
    if (trace) trace->at[j] = at[j];
  }
}

// out += (d speed/d t)^T weights at the traced evaluation.
template <typename V>
void pulled_back(const Attention& a, const Trace<V>& trace, const V* weights, V* out, std::vector<V>& sums) {
  sums.assign(2 * (a.modes + 1), V{});
  for (int64_t k = a.n - 1; k >= 0; --k) {
    V c1, s1, c = V{} + 1.0, s = V{}, total = V{};
    turn(trace.at[k], &c1, &s1);
    // the weights of w'' and of -w' in the pull of token k on those before it
    const V second = weights[k] * a.inverse[k] * (a.softmax ? trace.scale[k] : V{} + 1.0);
    const V first = a.softmax ? second * a.beta * trace.speed[k] : V{};
    for (int64_t m = 1; m <= a.modes; ++m) {
      V &re = sums[2 * m], &im = sums[2 * m + 1];
      const V next = c * c1 - s * s1;
      s = s * c1 + c * s1;
      c = next;
      total += (c * re + s * im) * (2 * a.bessel[m]);
      const V x = second * double(m * m), y = first * double(m);
      re = (re + x * c - y * s) * a.decay;
      im = (im + x * s + y * c) * a.decay;
    }
    out[k] += weights[k] * trace.slope[k] + total;
  }
}

}  // namespace

#endif  // PATHLINES_CAUSAL_H_
