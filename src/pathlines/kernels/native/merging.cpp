// When do pairs of tokens merge? The Gram closure of self-attention on n tokens, followed to the end in one call.
//
//   du_ij/dt = -T_ij - T_ji,   T_ij = s_i + r_i u_ij - (A u)_ij - s_i u_ij,   s_i = (A u)_ii,   r_i = sum_k a_ik,
//
// a_ik = e^{-beta u_ik}/Z_i (softmax) or e^{beta(1 - u_ik)}/n. Steps are those of an embedded Runge-Kutta pair, given
// as its tableau; each pair is counted at the time at which ln u_ij crosses ln(delta) on the cubic through both ends of
// the step. The arithmetic of a step stays in the first level of the cache for n up to about 40.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kMostStages = 7;

struct Rules {
  int64_t stages, most_steps;
  const double *a, *b, *e;  // stages x stages, stages, stages + 1
  double rtol, atol, delta, first_step;
  int64_t error_order;
  bool softmax;
};

template <typename T>
struct System {
  int64_t n, rows, width;
  T beta;
  bool softmax;
  std::vector<T> mass, weights, product;

  System(int64_t n_, T beta_, bool softmax_)
      : n(n_), rows(std::max(padded(n_, kRows), padded(n_, Lanes<T>::width))), width(padded(n_, 2 * Lanes<T>::width)), beta(beta_), softmax(softmax_) {
    mass.assign(width, 0);
    std::fill(mass.begin(), mass.begin() + n, softmax ? T(1) : std::exp(beta) / n);
    weights.assign(rows * width, 0);
    product.assign(rows * width, 0);
  }

  void drift(const T* u, T* du) {
    constexpr int W = Lanes<T>::width;
    std::vector<T>& w = weights;
    for (int64_t i = 0; i < n; ++i) {
      Vec<T> sum = {};
      for (int64_t j = 0; j < width; j += W) {
        Vec<T> x = load<T>(&mass[j]) * exponential<T>(-beta * load<T>(u + i * width + j));
        save<T>(&w[i * width + j], x);
        sum += x;
      }
      if (!softmax) continue;
      const T scale = 1 / total<T>(sum);
      for (int64_t j = 0; j < width; j += W) save<T>(&w[i * width + j], load<T>(&w[i * width + j]) * scale);
    }
    for (int64_t i = 0; i < n; i += kRows)
      for (int64_t j = 0; j < width; j += 2 * W)
        tile<T, 2>(&w[i * width], width, u + j, width, &product[i * width + j], width, n, false);
    for (int64_t i = 0; i < n; ++i) {
      const T own = product[i * width + i];
      T sum = 1;
      if (!softmax) {
        sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += w[i * width + j];
      }
      for (int64_t j = 0; j < width; j += W) {
        Vec<T> x = load<T>(u + i * width + j);
        save<T>(&product[i * width + j], own + (sum - own) * x - load<T>(&product[i * width + j]));
      }
    }
    for (int64_t i = 0; i < n; i += W)
      for (int64_t j = 0; j < n; j += W) {
        Vec<T> turned[W];
#pragma GCC unroll 16
        for (int64_t r = 0; r < W; ++r) turned[r] = load<T>(&product[(j + r) * width + i]);
        transpose<T>(turned);
#pragma GCC unroll 16
        for (int64_t r = 0; r < W; ++r) {
          const int64_t m = (i + r) * width + j;
          Vec<T> rate = -(load<T>(&product[m]) + turned[r]);
          save<T>(du + m, load<T>(u + m) == 0 ? rate * 0 : rate);
        }
      }
  }
};

// sum_i step c_i k_i over the stages with c_i != 0.
template <typename T>
struct Terms {
  int64_t count;
  T factors[kMostStages + 1];
  const T* slopes[kMostStages + 1];

  void choose(const double* weights, int64_t used, T step, T* const* k) {
    count = 0;
    for (int64_t i = 0; i < used; ++i) {
      if (weights[i] == 0) continue;
      factors[count] = step * static_cast<T>(weights[i]);
      slopes[count++] = k[i];
    }
  }

  Vec<T> sum(int64_t m) const {
    Vec<T> x = factors[0] * load<T>(slopes[0] + m);
    for (int64_t i = 1; i < count; ++i) x += factors[i] * load<T>(slopes[i] + m);
    return x;
  }
};

template <typename T>
T greatest(const std::vector<T>& x) {
  Vec<T> most = {};
  for (size_t m = 0; m < x.size(); m += Lanes<T>::width) {
    Vec<T> here = load<T>(&x[m]);
    most = here > most ? here : most;
  }
  T result = 0;
  for (int i = 0; i < Lanes<T>::width; ++i) result = std::max(result, most[i]);
  return result;
}

// The bin of the grid in which the cubic Hermite interpolant of ln u crosses the level, by Newton from the chord.
template <typename T>
int64_t crossing_bin(T u0, T r0, T u1, T r1, T t, T h, T level, T lowest, const T* grid, int64_t count) {
  const T kept0 = std::max(u0, lowest), kept1 = std::max(u1, lowest);
  const T v0 = std::log(kept0), gap = std::log(kept1) - v0;
  const T s0 = h * r0 / kept0, s1 = h * r1 / kept1;
  T s = gap == 0 ? 0 : std::clamp((level - v0) / gap, T(0), T(1));
  const T b = 3 * gap - 2 * s0 - s1, c = s0 + s1 - 2 * gap;
  for (int i = 0; i < 3; ++i) {
    const T value = v0 + s * (s0 + s * (b + s * c)) - level, slope = s0 + s * (2 * b + s * 3 * c);
    s = std::clamp(s - value / (slope == 0 ? T(1) : slope), T(0), T(1));
  }
  const T bin = std::ceil((t + s * h - grid[0]) / (grid[1] - grid[0]));
  return std::clamp<int64_t>(static_cast<int64_t>(bin), 0, count);
}

template <typename T>
void follow(const T* start, int64_t n, T beta, const Rules& rules, const T* grid, int64_t count, T* share) {
  constexpr int W = Lanes<T>::width;
  System<T> system(n, beta, rules.softmax);
  const int64_t width = system.width, size = system.rows * width;
  std::vector<T> u(size, 0), y(size, 0), buffer((rules.stages + 1) * size, 0), counts(count + 1, 0);
  T* k[kMostStages + 1];
  for (int64_t i = 0; i <= rules.stages; ++i) k[i] = &buffer[i * size];
  for (int64_t i = 0; i < n; ++i) std::copy(start + i * n, start + (i + 1) * n, &u[i * width]);
  const T delta = rules.delta, level = std::log(delta), end = grid[count - 1];
  const T eps = std::numeric_limits<T>::epsilon(), lowest = sizeof(T) == 4 ? T(1e-6) : T(1e-14);
  int64_t merged = 0, steps = 0;
  const int64_t pairs = n * (n - 1) / 2;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) merged += u[i * width + j] <= delta;
  counts[0] = merged;
  T t = 0, h = rules.first_step;
  bool failed = false;
  system.drift(u.data(), k[0]);
  Terms<T> terms;
  auto combine = [&](const double* weights, int64_t used, T step, T* to) {
    terms.choose(weights, used, step, k);
    for (int64_t m = 0; m < n * width; m += W) {
      Vec<T> x = load<T>(&u[m]) + terms.sum(m);
      save<T>(to + m, x > 0 ? x : x * 0);
    }
  };
  while (t < end && merged < pairs && steps < rules.most_steps) {
    ++steps;
    const bool lands = h * (1 + T(1e-9)) >= end - t;
    const T step = lands ? end - t : h;
    for (int64_t i = 1; i < rules.stages; ++i) {
      combine(rules.a + i * rules.stages, i, step, y.data());
      system.drift(y.data(), k[i]);
    }
    combine(rules.b, rules.stages, step, y.data());
    system.drift(y.data(), k[rules.stages]);
    const T slack = 32 * eps * std::max(greatest<T>(u), greatest<T>(y));
    Vec<T> squares = {};
    terms.choose(rules.e, rules.stages + 1, step, k);
    for (int64_t m = 0; m < n * width; m += W) {
      Vec<T> a = load<T>(&u[m]), b = load<T>(&y[m]);
      Vec<T> ratio = terms.sum(m) / (T(rules.atol) + slack + T(rules.rtol) * (a > b ? a : b));
      squares += ratio * ratio;
    }
    T ratio = std::sqrt(total<T>(squares) / (n * n));
    const bool finite = std::isfinite(ratio);
    ratio = finite ? ratio : T(1e10);
    const T power = std::pow(std::max(ratio, T(1e-16)), -T(1) / (rules.error_order + 1));
    const T growth = std::clamp(T(0.9) * power, T(0.2), T(10));
    if (ratio > 1) {
      h = step * growth;
      if (h < 8 * eps * std::max(t, end)) {
        failed = true;
        break;
      }
      continue;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j) {
        const int64_t m = i * width + j;
        const int64_t change = (u[m] > delta) - (y[m] > delta);
        if (change == 0) continue;
        merged += change;
        counts[crossing_bin<T>(u[m], k[0][m], y[m], k[rules.stages][m], t, step, level, lowest, grid, count)] += change;
      }
    h = step < h ? std::max(h, step * growth) : step * growth;
    t = lands ? end : t + step;
    u.swap(y);
    std::swap(k[0], k[rules.stages]);
  }
  const bool finished = !failed && (t >= end || merged >= pairs);
  T sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += counts[i];
    share[i] = finished || grid[i] <= t ? sum / pairs : std::numeric_limits<T>::quiet_NaN();
  }
}

template <typename T, ffi::DataType D>
ffi::Error merging(ffi::ThreadPool pool, bool softmax, double rtol, double atol, double delta, double first_step, int64_t most_steps,
                   int64_t error_order, ffi::Span<const double> a, ffi::Span<const double> b,
                   ffi::Span<const double> e, ffi::Buffer<D> start, ffi::Buffer<D> beta, ffi::Buffer<D> grid,
                   ffi::ResultBuffer<D> fractions) {
  const int64_t starts = start.dimensions()[0], n = start.dimensions()[1], count = grid.dimensions()[0];
  const int64_t runs = starts * beta.dimensions()[0];
  const int64_t stages = b.size();
  if (stages > kMostStages) return ffi::Error::InvalidArgument("too many stages");
  const Rules rules{stages, most_steps, a.begin(), b.begin(), e.begin(), rtol, atol, delta, first_step, error_order,
                    softmax};
  share(pool, runs, [&](int64_t i) {
    follow<T>(start.typed_data() + i % starts * n * n, n, beta.typed_data()[i / starts], rules, grid.typed_data(),
              count, fractions->typed_data() + i * count);
  });
  return ffi::Error::Success();
}

template <ffi::DataType D>
auto binding() {
  return ffi::Ffi::Bind()
      .template Ctx<ffi::ThreadPool>()
      .template Attr<bool>("softmax")
      .template Attr<double>("rtol")
      .template Attr<double>("atol")
      .template Attr<double>("delta")
      .template Attr<double>("first_step")
      .template Attr<int64_t>("most_steps")
      .template Attr<int64_t>("error_order")
      .template Attr<ffi::Span<const double>>("a")
      .template Attr<ffi::Span<const double>>("b")
      .template Attr<ffi::Span<const double>>("e")
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Ret<ffi::Buffer<D>>();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(merging_float32, (merging<float, ffi::F32>), (binding<ffi::F32>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(merging_float64, (merging<double, ffi::F64>), (binding<ffi::F64>()));
