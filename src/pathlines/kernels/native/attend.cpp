// A_i = sum_j a_ij v_j with a_ij = m_j exp(<q_i, k_j> - log_scale_i): attention that never writes its n x n weights.
//
// Softmax takes log_scale_i = ln sum_j m_j exp(<q_i, k_j>), found online over blocks of keys; unnormalised attention
// takes a given shift. Tiles of rows against blocks of keys stay in the cache; all arithmetic is on vectors of the
// width of the machine. Cost O(n m (p + d)) time and O(m (p + d)) memory for each system of the batch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int64_t kTile = 36;            // rows that share a block of keys
constexpr int64_t kBlock = 256;          // keys a block
constexpr int64_t kManyFlops = 1 << 23;  // below this a second thread costs more than it gives

// A matrix cut in panels of N vectors' width, each panel contiguous, so that products stream through it.
template <typename T>
struct Panels {
  int wide;
  int64_t rows, columns;
  std::vector<T> data;

  void shape(int64_t inner, int64_t needed) {
    constexpr int W = Lanes<T>::width;
    wide = needed <= W ? W : 2 * W;
    rows = inner;
    columns = (needed + wide - 1) / wide * wide;
    data.assign(rows * columns, 0);
  }

  // b[k][j] = from[k * down + j * across] for j < needed.
  void fill(const T* from, int64_t down, int64_t across, int64_t needed) {
    T* to = data.data();
    for (int64_t j0 = 0; j0 < columns; j0 += wide) {
      const int64_t real = std::min<int64_t>(wide, needed - j0);
      for (int64_t k = 0; k < rows; ++k, to += wide)
        for (int64_t j = 0; j < real; ++j) to[j] = from[k * down + (j0 + j) * across];
    }
  }

  // c[r][0..) (+)= sum_k a[r][k] b[first + k][from..to) for kRows rows.
  void multiply(const T* a, int64_t lda, T* c, int64_t ldc, int64_t first, int64_t count, int64_t from, int64_t to,
                bool add) const {
    for (int64_t j = from; j < to; j += wide) {
      const T* panel = &data[(j / wide) * rows * wide + first * wide];
      if (wide == Lanes<T>::width)
        tile<T, 1>(a, lda, panel, wide, c + j - from, ldc, count, add);
      else
        tile<T, 2>(a, lda, panel, wide, c + j - from, ldc, count, add);
    }
  }
};

template <typename T>
struct Problem {
  const T *q, *k, *v, *mass, *shift;
  T *out, *log_scale;
  int64_t n, m, p, d;
  bool softmax;
};

// Keys by component (p x m) for the scores; values by row (m x d), or by component (d x m) when d leaves vectors empty.
template <typename T>
struct Packed {
  bool by_component;
  int64_t width, wide;
  Panels<T> keys, values;
  std::vector<T> components, mass;

  void pack(const Problem<T>& s) {
    constexpr int W = Lanes<T>::width;
    keys.shape(s.p, s.m);
    width = keys.columns;
    by_component = 2 * s.d <= W || s.d == 3;
    mass.assign(width, 0);
    std::copy(s.mass, s.mass + s.m, mass.begin());
    keys.fill(s.k, 1, s.p, s.m);
    if (by_component) {
      wide = padded(s.d, W);
      components.assign(s.d * width, 0);
      for (int64_t j = 0; j < s.m; ++j)
        for (int64_t e = 0; e < s.d; ++e) components[e * width + j] = s.v[j * s.d + e];
    } else {
      values.shape(s.m, s.d);
      wide = values.columns;
      values.fill(s.v, s.d, 1, s.d);
    }
  }
};

template <typename T>
struct Scratch {
  std::vector<T> queries, scores, sums, top, norm;
};

// Weights of one row against one block of keys, in place of the scores; returns their sum.
template <typename T>
inline T weigh(T* scores, const T* mass, int64_t count, T top) {
  constexpr int W = Lanes<T>::width;
  Vec<T> sum = {};
  for (int64_t j = 0; j < count; j += W) {
    Vec<T> w = load<T>(mass + j) * exponential<T>(load<T>(scores + j) - top);
    save<T>(scores + j, w);
    sum += w;
  }
  return total<T>(sum);
}

template <typename T>
inline T largest(const T* scores, int64_t count) {
  constexpr int W = Lanes<T>::width;
  Vec<T> top = load<T>(scores);
  for (int64_t j = W; j < count; j += W) {
    Vec<T> next = load<T>(scores + j);
    top = next > top ? next : top;
  }
  T best = top[0];
  for (int i = 1; i < W; ++i) best = std::max(best, top[i]);
  return best;
}

template <typename T>
void add_values(const Problem<T>& s, const Packed<T>& packed, Scratch<T>& w, int64_t j0, int64_t count, int64_t span,
                int64_t rows) {
  constexpr int W = Lanes<T>::width;
  if (!packed.by_component) {
    for (int64_t r = 0; r < rows; r += kRows)
      packed.values.multiply(&w.scores[r * kBlock], kBlock, &w.sums[r * packed.wide], packed.wide, j0, count, 0,
                             packed.wide, true);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t e = 0; e < s.d; ++e) {
      Vec<T> sum = {};
      for (int64_t j = 0; j < span; j += W)
        sum += load<T>(&w.scores[r * kBlock + j]) * load<T>(&packed.components[e * packed.width + j0 + j]);
      w.sums[r * packed.wide + e] += total<T>(sum);
    }
}

template <typename T>
void rows_of(const Problem<T>& s, const Packed<T>& packed, Scratch<T>& w, int64_t first, int64_t last) {
  const int64_t count = last - first, rows = padded(count, kRows), wide = packed.wide;
  w.queries.assign(rows * s.p, 0);
  std::copy(s.q + first * s.p, s.q + last * s.p, w.queries.begin());
  w.scores.resize(rows * kBlock);
  w.sums.assign(rows * wide, 0);
  w.top.assign(rows, s.softmax ? -std::numeric_limits<T>::infinity() : *s.shift);
  w.norm.assign(rows, 0);
  for (int64_t j0 = 0; j0 < s.m; j0 += kBlock) {
    const int64_t real = std::min(kBlock, s.m - j0), span = padded(real, packed.keys.wide);
    for (int64_t r = 0; r < rows; r += kRows)
      packed.keys.multiply(&w.queries[r * s.p], s.p, &w.scores[r * kBlock], kBlock, 0, s.p, j0, j0 + span, false);
    for (int64_t r = 0; r < rows; ++r) {
      T* scores = &w.scores[r * kBlock];
      for (int64_t j = real; j < span; ++j) scores[j] = std::numeric_limits<T>::lowest();
      if (s.softmax) {
        const T top = std::max(w.top[r], largest<T>(scores, span));
        if (top > w.top[r] && j0 > 0) {
          const T fade = std::exp(w.top[r] - top);
          w.norm[r] *= fade;
          for (int64_t e = 0; e < wide; ++e) w.sums[r * wide + e] *= fade;
        }
        w.top[r] = top;
      }
      w.norm[r] += weigh<T>(scores, &packed.mass[j0], span, w.top[r]);
    }
    add_values<T>(s, packed, w, j0, real, span, rows);
  }
  for (int64_t r = 0; r < count; ++r) {
    const T scale = s.softmax ? 1 / w.norm[r] : 1;
    for (int64_t e = 0; e < s.d; ++e) s.out[(first + r) * s.d + e] = w.sums[r * wide + e] * scale;
    s.log_scale[first + r] = s.softmax ? w.top[r] + std::log(w.norm[r]) : *s.shift;
  }
}

template <typename T>
void solve(const Problem<T>& s) {
  static thread_local Packed<T> packed_here;  // small systems come in thousands: keep their memory
  packed_here.pack(s);
  const Packed<T>& packed = packed_here;
  const int64_t tiles = (s.n + kTile - 1) / kTile;
  auto run = [&](int64_t from, int64_t step) {
    static thread_local Scratch<T> scratch;
    for (int64_t t = from; t < tiles; t += step)
      rows_of<T>(s, packed, scratch, t * kTile, std::min(s.n, (t + 1) * kTile));
  };
  const int64_t threads = s.n * s.m * (s.p + s.d) < kManyFlops ? 1 : std::min(cores(), tiles);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t) others.emplace_back(run, t, threads);
  run(0, threads);
  for (auto& thread : others) thread.join();
}

template <typename T, ffi::DataType D>
ffi::Error attend(bool softmax, ffi::Buffer<D> q, ffi::Buffer<D> k, ffi::Buffer<D> v, ffi::Buffer<D> mass,
                  ffi::Buffer<D> shift, ffi::ResultBuffer<D> out, ffi::ResultBuffer<D> log_scale) {
  const auto a = q.dimensions(), b = k.dimensions(), c = v.dimensions();
  const size_t rank = a.size();
  const int64_t n = a[rank - 2], p = a[rank - 1], m = b[rank - 2], d = c[rank - 1];
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < rank; ++i) batch *= a[i];
  for (int64_t i = 0; i < batch; ++i)
    solve<T>({q.typed_data() + i * n * p, k.typed_data() + i * m * p, v.typed_data() + i * m * d,
              mass.typed_data() + i * m, shift.typed_data() + i, out->typed_data() + i * n * d,
              log_scale->typed_data() + i * n, n, m, p, d, softmax});
  return ffi::Error::Success();
}

template <typename T, ffi::DataType D>
auto binding() {
  return ffi::Ffi::Bind()
      .template Attr<bool>("softmax")
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Ret<ffi::Buffer<D>>()
      .template Ret<ffi::Buffer<D>>();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_float32, (attend<float, ffi::F32>), (binding<float, ffi::F32>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_float64, (attend<double, ffi::F64>), (binding<double, ffi::F64>()));
