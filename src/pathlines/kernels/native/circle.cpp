// The circle: cos k t and sin k t, k = 0..K.
//
// Modes come in groups m - 4 .. m + 4 around m = 9, 18, ...: with C = cos mt, S = sin mt, c = cos rt, s = sin rt,
//   cos (m +- r)t = C c -+ S s,   sin (m +- r)t = S c +- C s,
// so that moments need only the sums of Cc, Ss, Sc, Cs, and series only sums of c and s under C and S: two products a
// mode and series, and the powers of e^{it} themselves only for r = 1..4 and m.

#include "spectral.h"

namespace {

constexpr int kReach = 4, kStride = 2 * kReach + 1;
constexpr int kTerms = 2 * kStride;  // of one group in one series: 1, c_r, s_r under C and under S

template <typename T>
struct Turn {
  Vec<T> c, s;
  Turn operator*(const Turn& o) const { return {c * o.c - s * o.s, s * o.c + c * o.s}; }
};

template <typename T>
struct Circle {
  static constexpr int d = 2, block = 64;
  int degree;
  int64_t groups, numbers;  // moments: sum m cos kt for k = 0..numbers/2 - 1, then sum m sin kt

  explicit Circle(int64_t degree_)
      : degree(degree_), groups((degree_ + 1 + kReach) / kStride), numbers(2 * (groups * kStride + kReach + 1)) {}

  // e^{irt} for r = 1..kReach; e^{i kStride t}.
  static Turn<T> powers(const Turn<T>& one, Turn<T>* power) {
    power[0] = one;
#pragma GCC unroll 4
    for (int r = 1; r < kReach; ++r) power[r] = power[r / 2] * power[(r - 1) / 2];
    return power[kReach - 1] * power[kReach - 1] * one;
  }

  void gather(const T* y, const T* mass, int64_t count, double* moments) const {
    constexpr int W = Lanes<T>::width;
    alignas(kBytes) T at[2][kChunk], m[kChunk], small[kReach][2][kChunk], step[2][kChunk], turned[2][kChunk];
    const int64_t width = columns<T, 2>(y, count, at);
    fill_masses<T>(mass, count, m);
    Vec<T> even[kReach + 1] = {}, odd[kReach + 1] = {};
    for (int64_t i = 0; i < width; i += W) {
      const Vec<T> weight = load<T>(m + i);
      const Turn<T> one{load<T>(at[0] + i), load<T>(at[1] + i)};
      Turn<T> power[kReach];
      const Turn<T> stride = powers(one, power);
      even[0] += weight;
#pragma GCC unroll 4
      for (int r = 0; r < kReach; ++r) {
        save<T>(small[r][0] + i, power[r].c);
        save<T>(small[r][1] + i, power[r].s);
        even[r + 1] += weight * power[r].c;
        odd[r + 1] += weight * power[r].s;
      }
      save<T>(step[0] + i, stride.c);
      save<T>(step[1] + i, stride.s);
      save<T>(turned[0] + i, weight);
      save<T>(turned[1] + i, all<T>(0));
    }
    double *cosines = moments, *sines = moments + numbers / 2;
    for (int r = 0; r <= kReach; ++r) {
      cosines[r] += total<T>(even[r]);
      sines[r] += total<T>(odd[r]);
    }
    for (int64_t group = 1; group <= groups; ++group) {
      Vec<T> cc[kReach] = {}, ss[kReach] = {}, sc[kReach] = {}, cs[kReach] = {}, c0 = {}, s0 = {};
      for (int64_t i = 0; i < width; i += W) {
        const Turn<T> stride{load<T>(step[0] + i), load<T>(step[1] + i)};
        const Turn<T> here = Turn<T>{load<T>(turned[0] + i), load<T>(turned[1] + i)} * stride;
        save<T>(turned[0] + i, here.c);
        save<T>(turned[1] + i, here.s);
        c0 += here.c;
        s0 += here.s;
#pragma GCC unroll 4
        for (int r = 0; r < kReach; ++r) {
          const Vec<T> c = load<T>(small[r][0] + i), s = load<T>(small[r][1] + i);
          cc[r] += here.c * c;
          ss[r] += here.s * s;
          sc[r] += here.s * c;
          cs[r] += here.c * s;
        }
      }
      const int64_t k = group * kStride;
      cosines[k] += total<T>(c0);
      sines[k] += total<T>(s0);
      for (int r = 1; r <= kReach; ++r) {
        const double a = total<T>(cc[r - 1]), b = total<T>(ss[r - 1]), c = total<T>(sc[r - 1]), e = total<T>(cs[r - 1]);
        cosines[k + r] += a - b;
        cosines[k - r] += a + b;
        sines[k + r] += c + e;
        sines[k - r] += c - e;
      }
    }
  }

  // The modes of one of U, A_1, A_2: sources weighed by m, m cos, m sin.
  void mode(const double* even, const double* odd, int series, int64_t k, double* a, double* b) const {
    const double even_below = k ? even[k - 1] : even[1], odd_below = k ? odd[k - 1] : -odd[1];
    *a = series == 0 ? even[k] : series == 1 ? (even[k + 1] + even_below) / 2 : (odd[k + 1] - odd_below) / 2;
    *b = series == 0 ? odd[k] : series == 1 ? (odd[k + 1] + odd_below) / 2 : (even_below - even[k + 1]) / 2;
  }

  void series(const double* moments, const double* g, std::vector<T>& coefficients) const {
    constexpr int W = Lanes<T>::width;
    coefficients.resize(3 * (groups + 1) * kTerms * W);
    auto put = [&](int64_t term, double value) { save<T>(&coefficients[term * W], all<T>(value)); };
    std::vector<double> table(numbers, 0.0);
    double *a = table.data(), *b = a + numbers / 2;
    for (int series = 0; series < 3; ++series) {
      for (int64_t k = 0; k <= degree; ++k) {
        mode(moments, moments + numbers / 2, series, k, a + k, b + k);
        a[k] *= k ? 2 * g[k] : g[0];
        b[k] *= k ? 2 * g[k] : 0;
      }
      put(series * kTerms, a[0]);
      for (int r = 1; r <= kReach; ++r) {
        put(series * kTerms + 2 * r - 1, a[r]);
        put(series * kTerms + 2 * r, b[r]);
      }
      for (int64_t group = 1; group <= groups; ++group) {
        const int64_t k = group * kStride, under_c = (group * 3 + series) * kTerms, under_s = under_c + kStride;
        put(under_c, a[k]);
        put(under_s, b[k]);
        for (int r = 1; r <= kReach; ++r) {
          put(under_c + 2 * r - 1, a[k + r] + a[k - r]);
          put(under_c + 2 * r, b[k + r] - b[k - r]);
          put(under_s + 2 * r - 1, b[k + r] + b[k - r]);
          put(under_s + 2 * r, a[k - r] - a[k + r]);
        }
      }
    }
  }

  static Vec<T> inner(const T* terms, const Turn<T>* power) {
    constexpr int W = Lanes<T>::width;
    Vec<T> sum = load<T>(terms);
#pragma GCC unroll 4
    for (int r = 0; r < kReach; ++r) {
      sum += power[r].c * load<T>(terms + (2 * r + 1) * W);
      sum += power[r].s * load<T>(terms + (2 * r + 2) * W);
    }
    return sum;
  }

  void evaluate(const T* x, int64_t count, const T* coefficients, T* sums) const {
    constexpr int W = Lanes<T>::width;
    alignas(kBytes) T at[2][kChunk];
    const int64_t width = columns<T, 2>(x, count, at);
    for (int64_t i = 0; i < width; i += W) {
      const Turn<T> one{load<T>(at[0] + i), load<T>(at[1] + i)};
      Turn<T> power[kReach];
      const Turn<T> stride = powers(one, power);
      Turn<T> here = stride;
      Vec<T> sum[3];
#pragma GCC unroll 4
      for (int c = 0; c < 3; ++c) sum[c] = inner(coefficients + c * kTerms * W, power);
      const T* terms = coefficients + 3 * kTerms * W;
      for (int64_t group = 1; group <= groups; ++group, terms += 3 * kTerms * W, here = here * stride) {
#pragma GCC unroll 4
        for (int c = 0; c < 3; ++c) {
          sum[c] += here.c * inner(terms + c * kTerms * W, power);
          sum[c] += here.s * inner(terms + (c * kTerms + kStride) * W, power);
        }
      }
      for (int c = 0; c < 3; ++c) save<T>(sums + c * kChunk + i, sum[c]);
    }
  }
};

}  // namespace

namespace ffi = xla::ffi;

XLA_FFI_DEFINE_HANDLER_SYMBOL(circle_float32, (sum_by_harmonics<float, Circle, ffi::F32>), (spectral_binding<ffi::F32>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(circle_float64, (sum_by_harmonics<double, Circle, ffi::F64>), (spectral_binding<ffi::F64>()));
