// Attention among vectors of few components: keys lie across the lanes, everything else in registers.

#ifndef PATHLINES_ATTEND_SHORT_H_
#define PATHLINES_ATTEND_SHORT_H_

#include "attend.h"

namespace {

constexpr int kLongestShort = 8;

// Components of keys and values by column, and log2 of the masses relative to the largest (-1/0 where there is none).
template <typename T>
struct Columns {
  int64_t width;
  T heaviest;
  std::vector<T> data;

  const T* key(int c) const { return &data[c * width]; }
  const T* value(int c, int padded_c) const { return &data[(padded_c + c) * width]; }
  const T* log_mass(int padded_c) const { return &data[2 * padded_c * width]; }

  void pack(const Problem<T>& s, int components) {
    width = padded(s.m, Lanes<T>::width);
    data.assign((2 * components + 1) * width, 0);
    for (int64_t j = 0; j < s.m; ++j) {
      for (int64_t c = 0; c < s.p; ++c) data[c * width + j] = s.k[j * s.p + c];
      for (int64_t c = 0; c < s.d; ++c) data[(components + c) * width + j] = s.v[j * s.d + c];
    }
    heaviest = *std::max_element(s.mass, s.mass + s.m);
    T* log_mass = &data[2 * components * width];
    const T none = -std::numeric_limits<T>::infinity();
    for (int64_t j = 0; j < s.m; ++j)
      log_mass[j] = s.mass[j] == heaviest ? 0 : s.mass[j] > 0 ? std::log2(s.mass[j] / heaviest) : none;
    std::fill(log_mass + s.m, log_mass + width, none);
  }
};

// One row against keys [j0, j1): sums of weights and of weighted values, over lanes. Scores are in units of ln 2.
template <typename T, int C>
struct Row {
  static constexpr int W = Lanes<T>::width;
  Vec<T> q[C], top, norm, sum[C];

  Vec<T> score(const Columns<T>& keys, int64_t j, Vec<T> start) const {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) start += q[c] * load<T>(keys.key(c) + j);
    return start;
  }

  // Keys beyond `last` are masked; unnormalised weights are capped, where shifted scores may be of any size.
  template <bool kMasked, bool kCapped, int K>
  void add(const Columns<T>& keys, int64_t j0, int64_t j1, int64_t last) {
    Vec<T> lane;
    for (int l = 0; l < W; ++l) lane[l] = l;
    for (int64_t j = j0; j < j1; j += K * W) {
      Vec<T> w[K];
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        w[k] = score(keys, j + k * W, load<T>(keys.log_mass(C) + j + k * W) - top);
        if (kCapped) w[k] = at_most<T>(w[k], all<T>(Lanes<T>::highest * Lanes<T>::log2e));
      }
      powers_of_two<T, K>(w);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        if (kMasked) w[k] = lane + T(j + k * W) > all<T>(T(last)) ? all<T>(0) : w[k];
        norm += w[k];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sum[c] += w[k] * load<T>(keys.value(c, C) + j + k * W);
      }
    }
  }

  template <bool kCapped>
  void add_all(const Columns<T>& keys, int64_t whole, int64_t reach) {
    const int64_t pairs = whole / (2 * W) * (2 * W);
    add<false, kCapped, 2>(keys, 0, pairs, 0);
    add<false, kCapped, 1>(keys, pairs, whole, 0);
    add<true, kCapped, 1>(keys, whole, reach, reach - 1);
  }

  T largest(const Columns<T>& keys, int64_t count) const {
    Vec<T> most = all<T>(-std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < count / W * W; j += W) most = at_least<T>(score(keys, j, load<T>(keys.log_mass(C) + j)), most);
    T best = most[0];
    for (int l = 1; l < W; ++l) best = std::max(best, most[l]);
    const Vec<T> rest = count % W ? score(keys, count / W * W, load<T>(keys.log_mass(C) + count / W * W)) : most;
    for (int l = 0; l < count % W; ++l) best = std::max(best, rest[l]);
    return best;
  }
};

template <typename T, int C>
void short_rows(const Problem<T>& s, const Columns<T>& keys, const Shifts<T>& shifts, int64_t first, int64_t last) {
  constexpr int W = Lanes<T>::width;
  constexpr T log2e = Lanes<T>::log2e;
  for (int64_t i = first; i < last; ++i) {
    Row<T, C> row = {};
    for (int c = 0; c < s.p; ++c) row.q[c] = all<T>(s.q[i * s.p + c] * log2e);
    const int64_t reach = s.reach(i), whole = s.causal ? reach / W * W : padded(reach, W);
    T top = (s.softmax ? shifts.bound(s, i) : *s.shift) * log2e;
    if (s.softmax && !shifts.bounded) top = row.largest(keys, reach);
    row.top = all<T>(top);
    if (s.softmax)
      row.template add_all<false>(keys, whole, reach);
    else
      row.template add_all<true>(keys, whole, reach);
    const T norm = total<T>(row.norm), scale = s.softmax ? 1 / norm : keys.heaviest;
    for (int c = 0; c < s.d; ++c) s.out[i * s.d + c] = total<T>(row.sum[c]) * scale;
    s.log_scale[i] = s.softmax ? top / log2e + std::log(norm * keys.heaviest) : *s.shift;
  }
}

template <typename T>
void short_rows(const Problem<T>& s, const Columns<T>& keys, const Shifts<T>& shifts, int components, int64_t first,
                int64_t last) {
  switch (components) {
    case 2: return short_rows<T, 2>(s, keys, shifts, first, last);
    case 3: return short_rows<T, 3>(s, keys, shifts, first, last);
    case 4: return short_rows<T, 4>(s, keys, shifts, first, last);
    default: return short_rows<T, kLongestShort>(s, keys, shifts, first, last);
  }
}

inline int short_components(int64_t p, int64_t d) {
  const int64_t most = std::max(p, d);
  return most <= 2 ? 2 : most <= 4 ? static_cast<int>(most) : kLongestShort;
}

}  // namespace

#endif  // PATHLINES_ATTEND_SHORT_H_
