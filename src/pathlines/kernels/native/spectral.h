// (U_i, A_i) = sum_j m_j e^{beta(<x_i, y_j> - 1)} (1, y_j) between unit vectors, by harmonics: what all spheres share.
//
// Sources are gathered into moments, moments turned into the coefficients of U and of the components of A, and these
// evaluated at the targets: O((n + m) C) time with C coefficients. Causal rows take the sources of earlier blocks from
// running moments, and those of their own block directly. Pieces do not depend on the number of threads, nor do results.
//
// A basis B<T> knows: d, block (rows of a causal block), numbers (how many moments),
//   gather(y, mass, count, moments): moments += those of at most kChunk sources,
//   series(moments, g, coefficients), evaluate(x, count, coefficients, sums): sums[c * kChunk + i], c = 0..d.

#ifndef PATHLINES_SPECTRAL_H_
#define PATHLINES_SPECTRAL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "parallel.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace {

constexpr int64_t kChunk = 256;      // tokens whose columns stay in the first cache
constexpr int64_t kMostPieces = 64;  // into which the tokens are cut
constexpr double kWorthSum = 2e5;    // products that pay for waking a second thread

template <typename T>
struct Sum {
  const T *x, *y, *mass;
  T beta, shift;
  T *out, *log_scale;
  int64_t n, m;
  int degree, start;
  bool softmax, raw, causal;
};

// g_0..g_{degree} of e^{beta(t - 1)} on the unit sphere of R^d: ratios from `start` downwards, the first of them a close
// bound (`ratio_bound` of bessel.py), then sum_l N(d, l) g_l = 1.
inline std::vector<double> spectrum(double beta, int d, int degree, int start) {
  start = std::max(start, degree);
  std::vector<double> g(start + 1, 1.0);
  const double half = start + d / 2.0 - 0.5;
  double ratio = beta / (half + std::sqrt(half * half + beta * beta)), sum = 0, number = 1, product = 1;
  for (int l = start; l > 0; --l) g[l] = ratio = beta / (2 * l + d - 2 + beta * ratio);
  for (int l = 0; l <= start; ++l) {
    if (l > 0) product *= g[l];
    g[l] = product;
    number = d == 2 ? (l ? 2 : 1) : 2 * l + 1;
    sum += number * product;
  }
  for (double& x : g) x /= sum;
  g.resize(degree + 1);
  return g;
}

// Columns of at most kChunk rows of D numbers, filled up with zeros to whole vectors; how many numbers a column has.
template <typename T, int D>
inline int64_t columns(const T* rows, int64_t count, T (&to)[D][kChunk]) {
  const int64_t width = padded(count, Lanes<T>::width);
  for (int64_t i = 0; i < count; ++i)
    for (int c = 0; c < D; ++c) to[c][i] = rows[i * D + c];
  for (int c = 0; c < D; ++c) std::fill(to[c] + count, to[c] + width, T(0));
  return width;
}

template <typename T>
void fill_masses(const T* mass, int64_t count, T (&to)[kChunk]) {
  std::copy(mass, mass + count, to);
  std::fill(to + count, to + padded(count, Lanes<T>::width), T(0));
}

// sums += those over the pairs j <= i of one block; targets lie across the lanes.
template <typename T, int D>
void add_block(const T* x, const T* y, const T* mass, int64_t count, T beta, T* sums) {
  constexpr int W = Lanes<T>::width;
  T to[D][kChunk];
  const int64_t width = columns<T, D>(x, count, to);
  Vec<T> lane;
  for (int l = 0; l < W; ++l) lane[l] = l;
  for (int64_t j = 0; j < count; ++j)
    for (int64_t i = j / W * W; i < width; i += W) {
      Vec<T> score = all<T>(-1);
#pragma GCC unroll 4
      for (int c = 0; c < D; ++c) score += load<T>(&to[c][i]) * y[j * D + c];
      Vec<T> weight = mass[j] * exponential<T>(beta * score);
      weight = lane + T(i) < all<T>(T(j)) ? all<T>(0) : weight;
      save<T>(sums + i, load<T>(sums + i) + weight);
#pragma GCC unroll 4
      for (int c = 0; c < D; ++c) {
        T* at = sums + (c + 1) * kChunk + i;
        save<T>(at, load<T>(at) + weight * y[j * D + c]);
      }
    }
}

// ln x = k ln 2 + 2 artanh(s), s = (f - 1)/(f + 1), x = 2^k f with f between sqrt(1/2) and sqrt(2), so |s| < 0.172; for
// normal numbers x > 0. Integers become numbers by way of the last bits of `magic`: k has 64 bits in float64, for which
// AVX2 knows neither a signed shift nor a conversion.
template <typename T>
inline Vec<T> logarithm(Vec<T> x) {
  using L = Lanes<T>;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  typedef Bits Unsigned __attribute__((vector_size(kBytes)));
  constexpr int terms = sizeof(T) == 4 ? 5 : 10;
  constexpr T half = T(0.70710678118654752440), ln2 = T(0.69314718055994530942);
  const Bits bias = Bits(1) << (8 * sizeof(T) - 2 - L::shift);
  const Unsigned bits = reinterpret_cast<Unsigned>(x);
  const Unsigned k = ((bits - reinterpret_cast<Unsigned>(all<T>(half)) + (bias << L::shift)) >> L::shift) - bias;
  const Vec<T> number = reinterpret_cast<Vec<T>>(k + reinterpret_cast<Unsigned>(all<T>(L::magic))) - L::magic;
  const Vec<T> f = reinterpret_cast<Vec<T>>(bits - (k << L::shift));
  const Vec<T> s = (f - 1) / (f + 1), square = s * s;
  Vec<T> sum = all<T>(T(1) / (2 * terms - 1));
#pragma GCC unroll 16
  for (int i = terms - 2; i >= 0; --i) sum = sum * square + T(1) / (2 * i + 1);
  return number * ln2 + 2 * s * sum;
}

// Whether the logarithm above serves: no zero, nothing below, next to nothing or not a number.
template <typename T>
inline bool are_normal(const T* x, int64_t count) {
  constexpr int W = Lanes<T>::width;
  typename Lanes<T>::Integers normal = load<T>(x) == load<T>(x);
  for (int64_t i = 0; i < count / W * W; i += W) normal &= load<T>(x + i) >= all<T>(std::numeric_limits<T>::min());
  bool every = true;
  for (int l = 0; l < W; ++l) every &= normal[l] != 0;
  for (int64_t i = count / W * W; i < count; ++i) every &= x[i] >= std::numeric_limits<T>::min();
  return every;
}

// Rows [first, first + count) from their sums: A/U and beta + ln U (0 and -1/0 where there is no mass, U = 0), or
// e^{beta - shift} A and the shift, or raw: A and U.
template <typename T, int D>
void finish(const Sum<T>& s, int64_t first, int64_t count, T* sums) {
  constexpr int W = Lanes<T>::width;
  const T factor = s.raw ? T(1) : std::exp(s.beta - s.shift);
  const bool normal = s.softmax && are_normal<T>(sums, count);
  for (int64_t i = 0; i < count; i += W) {
    const Vec<T> potential = load<T>(sums + i), inverse = potential == 0 ? all<T>(0) : 1 / potential;
    const Vec<T> scale = s.softmax ? inverse : all<T>(factor);
    for (int c = 1; c <= D; ++c) save<T>(sums + c * kChunk + i, load<T>(sums + c * kChunk + i) * scale);
    if (normal) save<T>(sums + i, s.beta + logarithm<T>(potential));
  }
  T* rows = s.out + first * D;
  for (int64_t i = 0; i < count; ++i)
    for (int c = 0; c < D; ++c) rows[i * D + c] = sums[(c + 1) * kChunk + i];
  T* scales = s.log_scale + first;
  for (int64_t i = 0; i < count; ++i)
    scales[i] = normal || s.raw ? sums[i] : s.softmax ? s.beta + std::log(sums[i]) : s.shift;
}

// Pieces of whole chunks, in equal numbers of chunks.
struct Pieces {
  int64_t rows, size, count;
  explicit Pieces(int64_t rows_) : rows(rows_) {
    size = padded((rows + kMostPieces - 1) / kMostPieces, kChunk);
    count = (rows + size - 1) / size;
  }
  int64_t first(int64_t p) const { return p * size; }
  int64_t last(int64_t p) const { return std::min(rows, (p + 1) * size); }
};

template <typename T, template <typename> class B>
struct Summation {
  static constexpr int D = B<T>::d;
  const Sum<T>& s;
  const B<T>& basis;
  const std::vector<double> g;

  Summation(const Sum<T>& s_, const B<T>& basis_)
      : s(s_), basis(basis_), g(spectrum(s_.beta, D, s_.degree, s_.start)) {}

  void gather(int64_t first, int64_t last, double* moments) const {
    for (int64_t j = first; j < last; j += kChunk)
      basis.gather(s.y + j * D, s.mass + j, std::min(kChunk, last - j), moments);
  }

  void rows(int64_t first, int64_t last, const std::vector<T>& coefficients) const {
    alignas(kBytes) T sums[(D + 1) * kChunk];
    for (int64_t i = first; i < last; i += kChunk) {
      const int64_t count = std::min(kChunk, last - i);
      basis.evaluate(s.x + i * D, count, coefficients.data(), sums);
      finish<T, D>(s, i, count, sums);
    }
  }

  void causal_rows(int64_t first, int64_t last, double* before) const {
    alignas(kBytes) T sums[(D + 1) * kChunk];
    std::vector<T> coefficients;
    for (int64_t i = first; i < last; i += B<T>::block) {
      const int64_t count = std::min<int64_t>(B<T>::block, last - i);
      basis.series(before, g.data(), coefficients);
      basis.evaluate(s.x + i * D, count, coefficients.data(), sums);
      add_block<T, D>(s.x + i * D, s.y + i * D, s.mass + i, count, s.beta, sums);
      finish<T, D>(s, i, count, sums);
      gather(i, i + count, before);
    }
  }

  template <typename Share>
  void run(const Share& spread) const {
    const Pieces sources(s.m), targets(s.n);
    const int64_t numbers = basis.numbers;
    std::vector<double> moments((sources.count + 1) * numbers, 0.0);
    double* parts = moments.data() + numbers;
    spread(sources.count, [&](int64_t p) { gather(sources.first(p), sources.last(p), parts + p * numbers); });
    for (int64_t p = 0; p < sources.count; ++p)
      for (int64_t k = 0; k < numbers; ++k) parts[p * numbers + k] += parts[(p - 1) * numbers + k];
    if (s.causal) {
      spread(targets.count, [&](int64_t p) { causal_rows(targets.first(p), targets.last(p), &moments[p * numbers]); });
      return;
    }
    std::vector<T> coefficients;
    basis.series(&moments[sources.count * numbers], g.data(), coefficients);
    spread(targets.count, [&](int64_t p) { rows(targets.first(p), targets.last(p), coefficients); });
  }
};

template <typename T, template <typename> class B, xla::ffi::DataType E>
xla::ffi::Error sum_by_harmonics(xla::ffi::ThreadPool pool, bool softmax, bool raw, bool causal, int64_t degree, int64_t start,
                                 xla::ffi::Buffer<E> x, xla::ffi::Buffer<E> y, xla::ffi::Buffer<E> mass,
                                 xla::ffi::Buffer<E> beta, xla::ffi::Buffer<E> shift, xla::ffi::ResultBuffer<E> out,
                                 xla::ffi::ResultBuffer<E> log_scale) {
  constexpr int D = B<T>::d;
  const auto a = x.dimensions(), b = y.dimensions();
  const int64_t n = a[a.size() - 2], m = b[b.size() - 2];
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < a.size(); ++i) batch *= a[i];
  auto sum = [&](int64_t i) {
    return Sum<T>{x.typed_data() + i * n * D, y.typed_data() + i * m * D, mass.typed_data() + i * m,
                  beta.typed_data()[i], shift.typed_data()[i], out->typed_data() + i * n * D,
                  log_scale->typed_data() + i * n, n, m, static_cast<int>(degree), static_cast<int>(start), softmax, raw,
                  causal};
  };
  auto alone = [](int64_t count, const auto& work) {
    for (int64_t p = 0; p < count; ++p) work(p);
  };
  auto together = [&pool](int64_t count, const auto& work) { share(pool, count, work); };
  const B<T> basis(degree);
  const double work = double(n + m) * double(basis.numbers);
  if (batch >= 2 * pool.num_threads() && batch * work > kWorthSum) {
    share(pool, batch, [&](int64_t i) {
      const Sum<T> one = sum(i);
      Summation<T, B>(one, basis).run(alone);
    });
    return xla::ffi::Error::Success();
  }
  for (int64_t i = 0; i < batch; ++i) {
    const Sum<T> one = sum(i);
    if (work > kWorthSum)
      Summation<T, B>(one, basis).run(together);
    else
      Summation<T, B>(one, basis).run(alone);
  }
  return xla::ffi::Error::Success();
}

template <xla::ffi::DataType E>
auto spectral_binding() {
  return xla::ffi::Ffi::Bind()
      .template Ctx<xla::ffi::ThreadPool>()
      .template Attr<bool>("softmax")
      .template Attr<bool>("raw")
      .template Attr<bool>("causal")
      .template Attr<int64_t>("degree")
      .template Attr<int64_t>("start")
      .template Arg<xla::ffi::Buffer<E>>()
      .template Arg<xla::ffi::Buffer<E>>()
      .template Arg<xla::ffi::Buffer<E>>()
      .template Arg<xla::ffi::Buffer<E>>()
      .template Arg<xla::ffi::Buffer<E>>()
      .template Ret<xla::ffi::Buffer<E>>()
      .template Ret<xla::ffi::Buffer<E>>();
}

}  // namespace

#endif  // PATHLINES_SPECTRAL_H_
