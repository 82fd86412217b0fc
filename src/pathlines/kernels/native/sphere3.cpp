// The sphere of R^3: harmonics Y_lm = s_lm Q_l^m(z) (x + iy)^m without poles, 0 <= m <= l <= L, of mean square one, with
//   Q_m^m = 1,  Q_{l+1}^m = 2z Q_l^m - 4 a_{l,m}^2 Q_{l-1}^m,  a_{l,m} = sqrt((l^2 - m^2)/(4 l^2 - 1)),
//   s_mm = sqrt(prod_{k<=m} (2k + 1)/(2k)),  s_lm = s_{l-1,m}/(2 a_{l,m}):
// the scale makes a step of the recurrence two products, and keeps Q of order one away from the poles.

#include <complex>

#include "spectral.h"

namespace {

constexpr int kTogether = 4;  // degrees whose moments are summed in registers at a time

template <typename T>
struct Sphere3 {
  using Number = std::complex<double>;
  static constexpr int d = 3, block = 128, kSeries = 4;
  int degree, top;  // of the series, and of the moments that they need
  int64_t numbers;  // moments: real and imaginary part of sum m Q_l^m (x + iy)^m, m by m
  std::vector<double> root, inverse, scale;
  std::vector<T> step;

  explicit Sphere3(int64_t degree_) : degree(degree_), top(degree_ + 1), numbers((top + 1) * (top + 2)) {
    for (int k = 0; k <= 2 * top + 4; ++k) root.push_back(std::sqrt(double(k)));
    inverse.push_back(1);
    for (int l = 1; l <= top + 1; ++l) inverse.push_back(1 / std::sqrt(4.0 * l * l - 1));
    scale.resize(numbers / 2);
    step.resize(numbers / 2 + kTogether);
    double first = 1;
    for (int m = 0; m <= top; ++m) {
      if (m) first *= root[2 * m + 1] / root[2 * m];
      for (int l = m; l <= top; ++l) {
        const double a = neighbour(l, m);
        scale[index(l, m)] = l == m ? first : scale[index(l - 1, m)] / (2 * a);
        step[index(l, m)] = 4 * a * a;
      }
    }
  }

  int64_t index(int l, int m) const { return int64_t(m) * (2 * top + 3 - m) / 2 + l - m; }
  double neighbour(int l, int m) const { return root[l - m] * root[l + m] * inverse[l]; }
  double turned(int l, int m) const { return root[l + m] * root[std::max(l + m - 1, 0)] * inverse[l]; }

  // The chunk, and for one m: the masses times (x + iy)^m, and two neighbours of the recurrence in l.
  struct Chunk {
    alignas(kBytes) T at[3][kChunk], real[kChunk], imag[kChunk], now[kChunk], before[kChunk];
  };

  template <int K>
  void gather_degrees(Chunk& chunk, int64_t width, const T* steps, double* moments) const {
    constexpr int W = Lanes<T>::width;
    Vec<T> real[K] = {}, imag[K] = {}, factor[K];
    for (int k = 0; k < K; ++k) factor[k] = all<T>(steps[k]);
    for (int64_t i = 0; i < width; i += W) {
      const Vec<T> z = load<T>(chunk.at[2] + i), a = load<T>(chunk.real + i), b = load<T>(chunk.imag + i);
      Vec<T> now = load<T>(chunk.now + i), before = load<T>(chunk.before + i);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        real[k] += now * a;
        imag[k] += now * b;
        const Vec<T> next = z * now - factor[k] * before;
        before = now;
        now = next;
      }
      save<T>(chunk.now + i, now);
      save<T>(chunk.before + i, before);
    }
    for (int k = 0; k < K; ++k) {
      moments[2 * k] += total<T>(real[k]);
      moments[2 * k + 1] += total<T>(imag[k]);
    }
  }

  void gather(const T* y, const T* mass, int64_t count, double* moments) const {
    constexpr int W = Lanes<T>::width;
    Chunk chunk;
    const int64_t width = columns<T, 3>(y, count, chunk.at);
    fill_masses<T>(mass, count, chunk.real);
    std::fill(chunk.imag, chunk.imag + width, T(0));
    for (int64_t i = 0; i < width; ++i) chunk.at[2][i] *= 2;
    for (int m = 0; m <= top; ++m) {
      if (m) turn(chunk, width);
      std::fill(chunk.now, chunk.now + width, T(1));
      std::fill(chunk.before, chunk.before + width, T(0));
      int l = m;
      for (; l + kTogether <= top + 1; l += kTogether)
        gather_degrees<kTogether>(chunk, width, &step[index(l, m)], moments + 2 * index(l, m));
      for (; l <= top; ++l) gather_degrees<1>(chunk, width, &step[index(l, m)], moments + 2 * index(l, m));
    }
  }

  static void turn(Chunk& chunk, int64_t width) {
    constexpr int W = Lanes<T>::width;
    for (int64_t i = 0; i < width; i += W) {
      const Vec<T> a = load<T>(chunk.real + i), b = load<T>(chunk.imag + i);
      const Vec<T> x = load<T>(chunk.at[0] + i), y = load<T>(chunk.at[1] + i);
      save<T>(chunk.real + i, a * x - b * y);
      save<T>(chunk.imag + i, b * x + a * y);
    }
  }

  // sum_j m_j conj Y_lm(y_j), zero where there is no such harmonic.
  Number moment(const double* moments, int l, int m) const {
    if (l < 0 || m < 0 || m > l) return 0;
    const int64_t at = index(l, m);
    return scale[at] * Number(moments[2 * at], -moments[2 * at + 1]);
  }

  // The same with sources weighed by 1, x, y, z: a coordinate times a harmonic is a sum of its neighbours.
  void weighed(const double* moments, int l, int m, Number* sums) const {
    const Number minus = turned(l + 1, m + 1) * moment(moments, l + 1, m + 1) -
                         (l > m ? turned(l, -m) : 0.0) * moment(moments, l - 1, m + 1);
    const Number plus = m == 0 ? std::conj(minus)
                               : turned(l, m) * moment(moments, l - 1, m - 1) -
                                     turned(l + 1, 1 - m) * moment(moments, l + 1, m - 1);
    sums[0] = moment(moments, l, m);
    sums[1] = 0.5 * (plus + minus);
    sums[2] = Number(0, -0.5) * (plus - minus);
    sums[3] = neighbour(l + 1, m) * moment(moments, l + 1, m) + neighbour(l, m) * moment(moments, l - 1, m);
  }

  // For each m and l: real and imaginary parts for U, A_1, A_2, A_3, one after the other.
  void series(const double* moments, const double* g, std::vector<T>& coefficients) const {
    coefficients.clear();
    coefficients.reserve((degree + 1) * (degree + 2) * kSeries);
    Number sums[kSeries];
    for (int m = 0; m <= degree; ++m)
      for (int l = m; l <= degree; ++l) {
        weighed(moments, l, m, sums);
        const double weight = (m ? 2 : 1) * g[l] * scale[index(l, m)];
        for (const Number& sum : sums) {
          coefficients.push_back(weight * sum.real());
          coefficients.push_back(-weight * sum.imag());
        }
      }
  }

  void evaluate(const T* x, int64_t count, const T* coefficients, T* sums) const {
    constexpr int W = Lanes<T>::width;
    alignas(kBytes) T at[3][kChunk];
    const int64_t width = columns<T, 3>(x, count, at);
    for (int64_t i = 0; i < width; i += W) {
      const Vec<T> u = load<T>(at[0] + i), v = load<T>(at[1] + i), z = 2 * load<T>(at[2] + i);
      Vec<T> a = all<T>(1), b = all<T>(0), sum[kSeries] = {};
      const T* terms = coefficients;
      for (int m = 0; m <= degree; ++m) {
        Vec<T> real[kSeries] = {}, imag[kSeries] = {}, now = all<T>(1), before = all<T>(0);
        const T* factor = &step[index(m, m)];
        for (int l = m; l <= degree; ++l, ++factor, terms += 2 * kSeries) {
#pragma GCC unroll 4
          for (int c = 0; c < kSeries; ++c) {
            real[c] += now * terms[2 * c];
            imag[c] += now * terms[2 * c + 1];
          }
          const Vec<T> next = z * now - *factor * before;
          before = now;
          now = next;
        }
#pragma GCC unroll 4
        for (int c = 0; c < kSeries; ++c) sum[c] += a * real[c] + b * imag[c];
        const Vec<T> turned = a * u - b * v;
        b = b * u + a * v;
        a = turned;
      }
      for (int c = 0; c < kSeries; ++c) save<T>(sums + c * kChunk + i, sum[c]);
    }
  }
};

}  // namespace

namespace ffi = xla::ffi;

XLA_FFI_DEFINE_HANDLER_SYMBOL(sphere3_float32, (sum_by_harmonics<float, Sphere3, ffi::F32>), (spectral_binding<ffi::F32>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(sphere3_float64, (sum_by_harmonics<double, Sphere3, ffi::F64>), (spectral_binding<ffi::F64>()));
