// Vectors of the width of the machine: exponentials and small products that stay in registers.

#ifndef PATHLINES_VECTORS_H_
#define PATHLINES_VECTORS_H_

#include <algorithm>
#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif
#include <type_traits>
#include <utility>

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

constexpr int kRows = 6;          // rows of the register tile

template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  static constexpr int width = kBytes / 4;
  typedef float Vector __attribute__((vector_size(kBytes)));
  typedef float Stored __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef int32_t Integers __attribute__((vector_size(kBytes)));
  static constexpr float magic = 12582912.0f, log2e = 1.44269504088896341f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float lowest = -87.0f, highest = 88.0f;
  static constexpr int shift = 23, terms = 7;
};

template <>
struct Lanes<double> {
  static constexpr int width = kBytes / 8;
  typedef double Vector __attribute__((vector_size(kBytes)));
  typedef double Stored __attribute__((vector_size(kBytes), aligned(8), may_alias));
  typedef int64_t Integers __attribute__((vector_size(kBytes)));
  static constexpr double magic = 6755399441055744.0, log2e = 1.44269504088896340736;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr double lowest = -708.0, highest = 709.0;
  static constexpr int shift = 52, terms = 11;
};

template <typename T>
using Vec = typename Lanes<T>::Vector;

template <typename T>
inline Vec<T> load(const T* at) {
  return *reinterpret_cast<const typename Lanes<T>::Stored*>(at);
}

template <typename T>
inline void save(T* at, Vec<T> x) {
  *reinterpret_cast<typename Lanes<T>::Stored*>(at) = x;
}

// One load that serves several products: left alone, the compiler loads the number again for each.
template <typename T>
inline void in_register(Vec<T>& x) {
#if defined(__AVX512F__)
  asm("" : "+v"(x));
#elif defined(__AVX__)
  asm("" : "+x"(x));
#endif
}

template <typename T>
constexpr Vec<T> all(T x) {
  return Vec<T>{} + x;
}

// e^r on |r| <= a = ln(2)/(2 parts): the Taylor series, from whose end multiples of Chebyshev polynomials T_m(r/a) are
// taken until `count` coefficients remain. With `binary`, of 2^r on |r| <= 1/(2 parts).
template <typename T, int count = Lanes<T>::terms, int parts = 1>
struct EconomisedExponential {
  T at[count];
  constexpr explicit EconomisedExponential(bool binary = false) : at() {
    constexpr int most = 20;
    constexpr double ln2 = 0.69314718055994531, a = ln2 / (2 * parts);
    double c[most] = {1};
    for (int i = 1; i < most; ++i) c[i] = c[i - 1] / i;
    for (int m = most - 1; m >= count; --m) {
      double before[most] = {1}, cheb[most] = {0, 1};
      for (int k = 2; k <= m; ++k) {
        double next[most] = {};
        for (int i = 0; i < k; ++i) next[i + 1] += 2 * cheb[i];
        for (int i = 0; i < most; ++i) {
          next[i] -= before[i];
          before[i] = cheb[i];
          cheb[i] = next[i];
        }
      }
      double scale = c[m] / cheb[m];
      for (int i = 0; i < m; ++i) {
        double power = 1;
        for (int k = i; k < m; ++k) power *= a;
        c[i] -= scale * cheb[i] * power;
      }
    }
    double scale = 1;
    for (int i = 0; i < count; ++i) {
      at[i] = static_cast<T>(c[i] * scale);
      if (binary) scale *= ln2;
    }
  }
};

// max(x, least) and min(x, most), one instruction each; a NaN in x stays.
template <typename T>
inline Vec<T> at_least(Vec<T> x, Vec<T> least) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_max_ps(least, x);
  else return _mm512_max_pd(least, x);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) return _mm256_max_ps(least, x);
  else return _mm256_max_pd(least, x);
#else
  return least > x ? least : x;
#endif
}

template <typename T>
inline Vec<T> at_most(Vec<T> x, Vec<T> most) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_min_ps(most, x);
  else return _mm512_min_pd(most, x);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) return _mm256_min_ps(most, x);
  else return _mm256_min_pd(most, x);
#else
  return most < x ? most : x;
#endif
}

// e^x = 2^k e^r, |r| <= ln(2)/2; a NaN stays a NaN. k added to the exponent's bits multiplies by 2^k.
template <typename T>
inline Vec<T> exponential(Vec<T> x) {
  using L = Lanes<T>;
  using I = typename L::Integers;
  constexpr EconomisedExponential<T> series;
  x = at_most<T>(at_least<T>(x, all<T>(L::lowest)), all<T>(L::highest));
  Vec<T> biased = x * L::log2e + L::magic;
  Vec<T> k = biased - L::magic;
  Vec<T> r = (x - k * L::ln2_high) - k * L::ln2_low;
  Vec<T> sum = all<T>(series.at[L::terms - 1]);
#pragma GCC unroll 16
  for (int i = L::terms - 2; i >= 0; --i) sum = sum * r + series.at[i];
  return reinterpret_cast<Vec<T>>(reinterpret_cast<I>(sum) + (reinterpret_cast<I>(biased) << L::shift));
}

#if defined(__AVX512F__)
// The bits of 2^{i/16} less i, counted in sixteenths of an exponent: adding 16k + i in these units gives 2^{k + i/16}.
template <typename T>
struct Sixteenths {
  using I = typename std::remove_reference<decltype(typename Lanes<T>::Integers{}[0])>::type;
  alignas(64) I at[16];
  constexpr Sixteenths() : at() {
    constexpr uint64_t mantissa[16] = {0x0000000000000, 0x0b5586cf9890f, 0x172b83c7d517b, 0x2387a6e756238,
                                       0x306fe0a31b715, 0x3dea64c123422, 0x4bfdad5362a27, 0x5ab07dd485429,
                                       0x6a09e667f3bcd, 0x7a11473eb0187, 0x8ace5422aa0db, 0x9c49182a3f090,
                                       0xae89f995ad3ad, 0xc199bdd85529c, 0xd5818dcfba487, 0xea4afa2a490da};
    constexpr int shift = Lanes<T>::shift, lost = 52 - shift;
    constexpr uint64_t half = lost ? uint64_t(1) << (lost - 1) : 0;
    constexpr uint64_t one = ((uint64_t(1) << (8 * sizeof(T) - 2 - shift)) - 1) << shift;
    for (uint64_t i = 0; i < 16; ++i)
      at[i] = static_cast<I>(one + ((mantissa[i] + half) >> lost) - (i << (shift - 4)));
  }
};

// 2^{n/16} of the integers n that the last bits of `counts` hold.
template <typename T>
inline Vec<T> sixteenths(typename Lanes<T>::Integers counts) {
  using I = typename Lanes<T>::Integers;
  static constexpr Sixteenths<T> table;
  I found;
  if constexpr (sizeof(T) == 4)
    found = (I)_mm512_permutexvar_epi32((__m512i)counts, _mm512_load_si512(table.at));
  else
    found = (I)_mm512_permutex2var_epi64(_mm512_load_si512(table.at), (__m512i)counts, _mm512_load_si512(table.at + 8));
  return reinterpret_cast<Vec<T>>(found + (counts << (Lanes<T>::shift - 4)));
}
#endif

// 2^x in place, for K vectors of numbers below about 1 (-1/0 included if `kAny`, else not below the exponents of T):
// scores scaled by log2(e) need no reduction by ln(2), and a coefficient that is loaded once serves all K. Where a table
// of sixteen numbers fits in registers, the series need reach to 1/32 only.
template <typename T, int K, bool kAny = true>
inline void powers_of_two(Vec<T>* x) {
  using L = Lanes<T>;
  using I = typename L::Integers;
  Vec<T> biased[K], sum[K];
#if defined(__AVX512F__)
  constexpr int terms = sizeof(T) == 4 ? 4 : 7, parts = 16;
#else
  constexpr int terms = L::terms, parts = 1;
#endif
  constexpr EconomisedExponential<T, terms, parts> series(true);
  constexpr T magic = L::magic / parts;
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) {
    if (kAny) x[k] = at_least<T>(x[k], all<T>(L::lowest * L::log2e));
    biased[k] = x[k] + magic;
    x[k] = x[k] - (biased[k] - magic);
    sum[k] = all<T>(series.at[terms - 1]);
  }
#pragma GCC unroll 16
  for (int i = terms - 2; i >= (parts > 1 ? 1 : 0); --i) {
    Vec<T> c = all<T>(series.at[i]);
    if (K > 1) in_register<T>(c);
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) sum[k] = sum[k] * x[k] + c;
  }
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) {
#if defined(__AVX512F__)
    const Vec<T> part = sixteenths<T>(reinterpret_cast<I>(biased[k]));
    x[k] = part * (sum[k] * x[k]) + part;  // in this order, as part * x[k] may be below the smallest normal number
#else
    x[k] = reinterpret_cast<Vec<T>>(reinterpret_cast<I>(sum[k]) + (reinterpret_cast<I>(biased[k]) << L::shift));
#endif
  }
}

template <typename T>
inline T total(Vec<T> x) {
  T sum = 0;
  for (int i = 0; i < Lanes<T>::width; ++i) sum += x[i];
  return sum;
}

// c[r][0..N) (+)= sum_k a[r][k] b[k][0..N) for kRows rows, N vectors wide. Inlined into a larger function its sums do not
// all stay in registers.
template <typename T, int N>
__attribute__((noinline)) void tile(const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t inner, bool add) {
  constexpr int W = Lanes<T>::width;
  Vec<T> sums[kRows][N];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      Vec<T> zero = {};
      sums[r][v] = add ? load<T>(c + r * ldc + v * W) : zero;
    }
  for (int64_t k = 0; k < inner; ++k) {
    Vec<T> row[N];
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      row[v] = load<T>(b + k * ldb + v * W);
      in_register<T>(row[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      T factor = a[r * lda + k];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sums[r][v] += factor * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) save<T>(c + r * ldc + v * W, sums[r][v]);
}

template <typename T, int S, int... L>
inline void exchange(Vec<T>& a, Vec<T>& b, std::integer_sequence<int, L...>) {
  constexpr int W = Lanes<T>::width;
  Vec<T> low = __builtin_shufflevector(a, b, (L & S ? L - S + W : L)...);
  b = __builtin_shufflevector(a, b, (L & S ? L + W : L + S)...);
  a = low;
}

// The transpose of a square of W by W numbers, W lanes of a vector, by exchanges of blocks of side 1, 2, 4, ...
template <typename T, int S = 1>
inline void transpose(Vec<T>* x) {
  constexpr int W = Lanes<T>::width;
  if constexpr (S < W) {
#pragma GCC unroll 16
    for (int r = 0; r < W; ++r)
      if (!(r & S)) exchange<T, S>(x[r], x[r + S], std::make_integer_sequence<int, W>());
    transpose<T, 2 * S>(x);
  }
}

inline int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

#endif  // PATHLINES_VECTORS_H_
