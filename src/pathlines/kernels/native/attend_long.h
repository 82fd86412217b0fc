// Attention among vectors of many components: two matrix products a block, with the exponentials between them.

#ifndef PATHLINES_ATTEND_LONG_H_
#define PATHLINES_ATTEND_LONG_H_

#include "attend.h"

namespace {

constexpr int64_t kBlock = 256;  // keys a block
constexpr int64_t kTile = 96;    // rows that share it: tile, block and scores fit the second cache

// A matrix cut in panels two vectors wide, each panel contiguous, so that products stream through it.
template <typename T>
struct Panels {
  static constexpr int kWide = 2 * Lanes<T>::width;
  int64_t rows, columns;
  std::vector<T> data;

  void shape(int64_t inner, int64_t needed) {
    rows = inner;
    columns = padded(needed, kWide);
    data.resize(rows * columns);
  }

  T* panel(int64_t j) { return &data[j * rows]; }
  const T* panel(int64_t j) const { return &data[j * rows]; }

  // b[k][j] = from[k][j]: rows are cut.
  void fill(const T* from, int64_t needed) {
    for (int64_t j = 0; j < columns; j += kWide) {
      const int64_t real = std::min<int64_t>(kWide, needed - j);
      T* to = panel(j);
      for (int64_t k = 0; k < rows; ++k, to += kWide) {
        std::copy(from + k * needed + j, from + k * needed + j + real, to);
        std::fill(to + real, to + kWide, T(0));
      }
    }
  }

  // b[k][j] = from[j][k]: squares of vectors are turned.
  void fill_transposed(const T* from, int64_t needed) {
    constexpr int W = Lanes<T>::width;
    const int64_t whole = rows / W * W;
    for (int64_t j = 0; j < columns; j += W) {
      T* to = panel(j / kWide * kWide) + j % kWide;
      const int64_t real = std::max<int64_t>(0, std::min<int64_t>(W, needed - j));
      if (real == W)
        for (int64_t k = 0; k < whole; k += W) {
          Vec<T> square[W];
#pragma GCC unroll 16
          for (int r = 0; r < W; ++r) square[r] = load<T>(from + (j + r) * rows + k);
          transpose<T>(square);
#pragma GCC unroll 16
          for (int r = 0; r < W; ++r) save<T>(to + (k + r) * kWide, square[r]);
        }
      for (int64_t k = real == W ? whole : 0; k < rows; ++k)
        for (int64_t r = 0; r < W; ++r) to[k * kWide + r] = r < real ? from[(j + r) * rows + k] : 0;
    }
  }
};

template <typename T>
struct Packed {
  Panels<T> keys, values;
  T common;                       // the mass of every key, one if they differ
  std::vector<T> mass, log_mass;  // each mass and its logarithm; empty when all are equal

  void pack(const Problem<T>& s) {
    keys.shape(s.p, s.m);
    keys.fill_transposed(s.k, s.m);
    values.shape(s.m, s.d);
    values.fill(s.v, s.d);
    mass.clear();
    log_mass.clear();
    const auto [least, most] = std::minmax_element(s.mass, s.mass + s.m);
    common = *least == *most ? *most : 1;
    if (*least == *most) return;
    mass.assign(keys.columns, 0);
    std::copy(s.mass, s.mass + s.m, mass.begin());
    for (const T m : mass) log_mass.push_back(m > 0 ? std::log(m) : -std::numeric_limits<T>::infinity());
  }
};

template <typename T>
struct Scratch {
  std::vector<T> queries, scores, sums, top, norm;
};

// Weights e^{score - top} of one row against `count` keys, times their masses if there are any, in place of the scores;
// zero up to `span`. Returns their sum. With `kBounded` no exponent of T is left.
template <typename T, bool kBounded>
inline T weigh(T* scores, const T* mass, int64_t count, int64_t span, T top) {
  constexpr int W = Lanes<T>::width, K = 4;
  const Vec<T> below = all<T>(-top * Lanes<T>::log2e);
  Vec<T> sum = {};
  int64_t j = 0;
  auto some = [&](auto many) {
    constexpr int k_ = decltype(many)::value;
    Vec<T> w[k_];
#pragma GCC unroll 4
    for (int k = 0; k < k_; ++k) {
      w[k] = load<T>(scores + j + k * W) * Lanes<T>::log2e + below;
      if (!kBounded) w[k] = at_most<T>(w[k], all<T>(Lanes<T>::highest * Lanes<T>::log2e));
    }
    powers_of_two<T, k_, !kBounded>(w);
#pragma GCC unroll 4
    for (int k = 0; k < k_; ++k, j += W) {
      if (mass) w[k] *= load<T>(mass + j);
      if (j + W > count)
        for (int l = 0; l < W; ++l) w[k][l] = j + l < count ? w[k][l] : 0;
      save<T>(scores + j, w[k]);
      sum += w[k];
    }
  };
  while (j + K * W <= count) some(std::integral_constant<int, K>());
  while (j < count) some(std::integral_constant<int, 1>());
  std::fill(scores + std::min(span, j), scores + span, T(0));
  return total<T>(sum);
}

template <typename T>
inline T largest(const T* scores, int64_t count) {
  constexpr int W = Lanes<T>::width;
  T best = scores[0];
  int64_t j = 0;
  if (count >= W) {
    Vec<T> top = load<T>(scores);
    for (j = W; j + W <= count; j += W) top = at_least<T>(load<T>(scores + j), top);
    for (int l = 0; l < W; ++l) best = std::max(best, top[l]);
  }
  for (; j < count; ++j) best = std::max(best, scores[j]);
  return best;
}

template <typename T>
void long_rows(const Problem<T>& s, const Packed<T>& packed, const Shifts<T>& shifts, Scratch<T>& w, int64_t first,
               int64_t last) {
  constexpr int kWide = Panels<T>::kWide;
  const int64_t count = last - first, rows = padded(count, kRows), wide = packed.values.columns;
  w.queries.assign(rows * s.p, 0);
  std::copy(s.q + first * s.p, s.q + last * s.p, w.queries.begin());
  w.scores.resize(rows * kBlock);
  w.sums.assign(rows * wide, 0);
  w.top.assign(rows, 0);
  w.norm.assign(rows, 0);
  const bool online = s.softmax && !shifts.bounded;
  // Where the largest score is looked for and masses differ, scores carry their logarithms.
  const bool lifted = online && !packed.log_mass.empty(), weighed = !online && !packed.mass.empty();
  for (int64_t r = 0; r < count; ++r)
    w.top[r] = online ? -std::numeric_limits<T>::infinity() : s.softmax ? shifts.bound() : *s.shift;
  const int64_t reach = s.reach(last - 1);
  for (int64_t j0 = 0; j0 < reach; j0 += kBlock) {
    const int64_t real = std::min(kBlock, s.m - j0), span = padded(real, kWide);
    for (int64_t j = 0; j < span; j += kWide)
      for (int64_t r = 0; r < rows; r += kRows)
        tile<T, 2>(&w.queries[r * s.p], s.p, packed.keys.panel(j0 + j), kWide, &w.scores[r * kBlock + j], kBlock, s.p,
                   false);
    for (int64_t r = 0; r < count; ++r) {
      T* scores = &w.scores[r * kBlock];
      const int64_t open = std::max<int64_t>(0, std::min(real, s.reach(first + r) - j0));
      if (lifted)
        for (int64_t j = 0; j < open; ++j) scores[j] += packed.log_mass[j0 + j];
      if (online && open > 0) {
        const T top = std::max(w.top[r], largest<T>(scores, open));
        if (top > w.top[r] && w.norm[r] > 0) {
          const T fade = std::exp(w.top[r] - top);
          w.norm[r] *= fade;
          for (int64_t e = 0; e < wide; ++e) w.sums[r * wide + e] *= fade;
        }
        w.top[r] = top;
      }
      const T* mass = weighed ? &packed.mass[j0] : nullptr;
      if (s.softmax && !online)
        w.norm[r] += weigh<T, true>(scores, mass, open, span, w.top[r]);
      else if (w.top[r] > -std::numeric_limits<T>::infinity())
        w.norm[r] += weigh<T, false>(scores, mass, open, span, w.top[r]);
      else
        std::fill(scores, scores + span, T(0));
    }
    for (int64_t e = 0; e < wide; e += kWide)
      for (int64_t r = 0; r < rows; r += kRows)
        tile<T, 2>(&w.scores[r * kBlock], kBlock, packed.values.panel(e) + j0 * kWide, kWide, &w.sums[r * wide + e],
                   wide, real, true);
  }
  for (int64_t r = 0; r < count; ++r) {
    const bool unseen = s.softmax && (w.norm[r] == 0 || packed.common == 0);  // no mass: the sum of no keys at all
    const T scale = unseen ? 0 : s.softmax ? 1 / w.norm[r] : packed.common;
    for (int64_t e = 0; e < s.d; ++e) s.out[(first + r) * s.d + e] = w.sums[r * wide + e] * scale;
    s.top[first + r] = w.top[r];
    s.norm[first + r] = w.norm[r] * packed.common;
  }
}

}  // namespace

#endif  // PATHLINES_ATTEND_LONG_H_
