// Rows that go through matrices first: q_i = Q x_i, k_j = K y_j, v_j = V y_j.

#ifndef PATHLINES_MATRICES_H_
#define PATHLINES_MATRICES_H_

#include "attend_long.h"
#include "attend_short.h"

namespace {

// M x for `count` rows x of many components, M cut in panels.
template <typename T>
void multiply(const Panels<T>& panels, int64_t columns, const T* x, int64_t count, T* out) {
  static thread_local std::vector<T> from, to;
  const int64_t rows = padded(count, kRows), inner = panels.rows, wide = panels.columns;
  from.assign(rows * inner, 0);
  std::copy(x, x + count * inner, from.begin());
  to.resize(rows * wide);
  for (int64_t j = 0; j < wide; j += Panels<T>::kWide)
    for (int64_t r = 0; r < rows; r += kRows)
      tile<T, 2>(&from[r * inner], inner, panels.panel(j), Panels<T>::kWide, &to[r * wide + j], wide, inner, false);
  for (int64_t r = 0; r < count; ++r) std::copy(&to[r * wide], &to[r * wide] + columns, out + r * columns);
}

// M x for `count` rows x of C components (of `width`, where C is 0).
template <typename T, int C>
void apply(const T* matrix, int64_t rows, const T* x, int64_t count, int64_t width, T* out) {
  if (C > 0) width = C;
  for (int64_t i = 0; i < count; ++i, x += width)
    for (int64_t r = 0; r < rows; ++r) {
      T sum = 0;
      for (int64_t c = 0; c < width; ++c) sum += matrix[r * width + c] * x[c];
      *out++ = sum;
    }
}

// Q, K, V of one system, without rows where there is none and x or y itself is meant.
template <typename T>
struct Matrices {
  const T* data[3] = {};
  int64_t rows[3] = {}, width = 0;

  // The problem with rows that went through the matrices, which `room` holds; each(count, work) does work(0), work(1), ...
  template <typename Each>
  Problem<T> applied(Problem<T> s, std::vector<T>& room, const Each& each) const {
    const T** given[] = {&s.q, &s.k, &s.v};
    const T* x[] = {s.q, s.k, s.v};
    const int64_t counts[] = {s.n, s.m, s.m};
    T* out[3];
    size_t size = 0;
    for (int i = 0; i < 3; ++i) size += rows[i] * counts[i];
    if (room.size() < size) room.resize(size);
    T* next = room.data();
    for (int i = 0; i < 3; ++i) {
      if (rows[i] == 0) continue;
      out[i] = next;
      *given[i] = next;
      next += rows[i] * counts[i];
    }
    if (width > kLongestShort) {
      static thread_local Panels<T> panels[3];
      const Panels<T>* cut = panels;
      for (int i = 0; i < 3; ++i) {
        panels[i].shape(width, rows[i]);
        panels[i].fill_transposed(data[i], rows[i]);
      }
      const int64_t pieces = (std::max(s.n, s.m) + kTile - 1) / kTile;
      each(3 * pieces, [&](int64_t piece) {
        const int64_t i = piece / pieces, first = piece % pieces * kTile, left = counts[i] - first;
        if (rows[i] > 0 && left > 0)
          multiply<T>(cut[i], rows[i], x[i] + first * width, std::min(kTile, left), out[i] + first * rows[i]);
      });
      return s;
    }
    const auto product = width == 2 ? apply<T, 2> : width == 3 ? apply<T, 3> : width == 4 ? apply<T, 4> : apply<T, 0>;
    for (int i = 0; i < 3; ++i)
      if (rows[i] > 0) product(data[i], rows[i], x[i], counts[i], width, out[i]);
    return s;
  }
};

}  // namespace

#endif  // PATHLINES_MATRICES_H_
