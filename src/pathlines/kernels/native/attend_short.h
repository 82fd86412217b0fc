// Attention among vectors of few components: rows lie across the lanes, one key after the other is held against them.

#ifndef PATHLINES_ATTEND_SHORT_H_
#define PATHLINES_ATTEND_SHORT_H_

#include "attend.h"

namespace {

constexpr int kLongestShort = 8;

// log2 of the masses relative to the largest (-1/0 where there is none); empty when all are equal.
template <typename T>
struct LogMasses {
  T heaviest;
  std::vector<T> data;

  void pack(const Problem<T>& s) {
    const auto [least, most] = std::minmax_element(s.mass, s.mass + s.m);
    heaviest = *most;
    data.clear();
    if (*least == heaviest) return;
    for (int64_t j = 0; j < s.m; ++j)
      data.push_back(s.mass[j] > 0 ? std::log2(s.mass[j] / heaviest) : -std::numeric_limits<T>::infinity());
  }
};

// As many rows as lanes: sums of weights and of weighted values. Scores are in units of ln 2.
template <typename T, int C>
struct Rows {
  static constexpr int W = Lanes<T>::width;
  const Problem<T>& s;
  const T* log_mass;  // or none
  Vec<T> q[C], top, norm, sum[C];

  Rows(const Problem<T>& problem, const std::vector<T>& masses, int64_t first)
      : s(problem), log_mass(masses.empty() ? nullptr : masses.data()), norm(), sum() {
    for (int c = 0; c < C; ++c)
      for (int l = 0; l < W; ++l)
        q[c][l] = c < s.p ? s.q[std::min(first + l, s.n - 1) * s.p + c] * Lanes<T>::log2e : 0;
  }

  Vec<T> score(int64_t j, Vec<T> start) const {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      if (c < s.p) start += q[c] * s.k[j * s.p + c];
    return start;
  }

  // The largest score of each row among keys [0, whole), and among those up to its own number from there to `reach`.
  void find_top(int64_t first, int64_t whole, int64_t reach) {
    top = all<T>(-std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < reach; ++j) {
      Vec<T> x = score(j, all<T>(log_mass ? log_mass[j] : 0));
      if (j >= whole)
        for (int l = 0; l < W; ++l) x[l] = first + l < j ? top[l] : x[l];
      top = at_least<T>(x, top);
    }
  }

  // Rows that see no mass: their sum is that of no keys at all, zero, and its logarithm -1/0.
  void leave_unseen(T heaviest) {
    for (int l = 0; l < W; ++l) {
      if (heaviest > 0 && !(top[l] == -std::numeric_limits<T>::infinity())) continue;
      top[l] = -std::numeric_limits<T>::infinity();
      norm[l] = 1;
      for (int c = 0; c < C; ++c) sum[c][l] = 0;
    }
  }

  // Keys [j0, j1); rows before the key are masked, unnormalised weights capped, shifted scores being of any size there.
  // Sums are added in copies, which the compiler keeps in registers.
  template <bool kMasked, bool kCapped, bool kAny, int K>
  void add(int64_t first, int64_t j0, int64_t j1) {
    Vec<T> norm_ = norm, sum_[C];
    for (int c = 0; c < C; ++c) sum_[c] = sum[c];
    const Vec<T> below = -top;
    for (int64_t j = j0; j < j1; j += K) {
      Vec<T> w[K];
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        w[k] = score(j + k, kAny && log_mass ? log_mass[j + k] + below : below);
        if (kCapped) w[k] = at_most<T>(w[k], all<T>(Lanes<T>::highest * Lanes<T>::log2e));
      }
      powers_of_two<T, K, kAny>(w);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        if (kMasked)
          for (int l = 0; l < W; ++l) w[k][l] = first + l < j + k ? 0 : w[k][l];
        norm_ += w[k];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c)
          if (c < s.d) sum_[c] += w[k] * s.v[(j + k) * s.d + c];
      }
    }
    norm = norm_;
    for (int c = 0; c < C; ++c) sum[c] = sum_[c];
  }

  template <bool kCapped, bool kAny>
  void add_all(int64_t first, int64_t whole, int64_t reach) {
    const int64_t fours = whole / 4 * 4;
    add<false, kCapped, kAny, 4>(first, 0, fours);
    if (fours < whole) add<false, kCapped, kAny, 1>(first, fours, whole);
    if (whole < reach) add<true, kCapped, kAny, 1>(first, whole, reach);
  }
};

template <typename T, int C>
void short_rows(const Problem<T>& given, const LogMasses<T>& masses, const Shifts<T>& shifts, int64_t first,
                int64_t last) {
  constexpr int W = Lanes<T>::width;
  Problem<T> s = given;
  if (C <= 4) s.p = s.d = C;  // known to the compiler
  for (int64_t i = first; i < last; i += W) {
    const int64_t count = std::min<int64_t>(W, last - i), reach = s.reach(i + count - 1);
    const int64_t whole = s.causal ? std::min(s.m, i + 1) : reach;
    Rows<T, C> rows(s, masses.data, i);
    rows.top = all<T>((s.softmax ? shifts.bound() : *s.shift) * Lanes<T>::log2e);
    if (s.softmax && !shifts.bounded) rows.find_top(i, whole, reach);
    if (!s.softmax)
      rows.template add_all<true, true>(i, whole, reach);
    else if (shifts.bounded && masses.data.empty())
      rows.template add_all<false, false>(i, whole, reach);
    else
      rows.template add_all<false, true>(i, whole, reach);
    if (s.softmax && !(shifts.bounded && masses.heaviest > 0)) rows.leave_unseen(masses.heaviest);
    const Vec<T> scale = s.softmax ? all<T>(1) / rows.norm : all<T>(masses.heaviest);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      if (c < s.d) rows.sum[c] *= scale;
    for (int64_t l = 0; l < count; ++l) {
      for (int64_t c = 0; c < s.d; ++c) s.out[(i + l) * s.d + c] = rows.sum[c][l];
      s.top[i + l] = rows.top[l] * (1 / Lanes<T>::log2e);
      s.norm[i + l] = rows.top[l] == -std::numeric_limits<T>::infinity() ? 0 : rows.norm[l] * masses.heaviest;
    }
  }
}

template <typename T>
void short_rows(const Problem<T>& s, const LogMasses<T>& masses, const Shifts<T>& shifts, int64_t first, int64_t last) {
  switch (s.p == s.d ? s.p : 0) {
    case 2: return short_rows<T, 2>(s, masses, shifts, first, last);
    case 3: return short_rows<T, 3>(s, masses, shifts, first, last);
    case 4: return short_rows<T, 4>(s, masses, shifts, first, last);
    default: return short_rows<T, kLongestShort>(s, masses, shifts, first, last);
  }
}

}  // namespace

#endif  // PATHLINES_ATTEND_SHORT_H_
