// Rows that go through matrices first: q_i = Q x_i, k_j = K y_j, v_j = V y_j.

#ifndef PATHLINES_MATRICES_H_
#define PATHLINES_MATRICES_H_

#include "attend.h"

namespace {

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

  // Those of system `i` of a batch.
  Matrices of(int64_t i) const {
    Matrices own = *this;
    for (int k = 0; k < 3; ++k)
      if (rows[k] > 0) own.data[k] += i * rows[k] * width;
    return own;
  }

  // The problem with rows that went through the matrices, which `room` holds.
  Problem<T> applied(Problem<T> s, std::vector<T>& room) const {
    const T** given[] = {&s.q, &s.k, &s.v};
    const int64_t counts[] = {s.n, s.m, s.m};
    size_t size = 0;
    for (int i = 0; i < 3; ++i) size += rows[i] * counts[i];
    if (room.size() < size) room.resize(size);
    T* out = room.data();
    for (int i = 0; i < 3; ++i) {
      if (rows[i] == 0) continue;
      const auto product = width == 2 ? apply<T, 2> : width == 3 ? apply<T, 3> : width == 4 ? apply<T, 4> : apply<T, 0>;
      product(data[i], rows[i], *given[i], counts[i], width, out);
      *given[i] = out;
      out += rows[i] * counts[i];
    }
    return s;
  }
};

}  // namespace

#endif  // PATHLINES_MATRICES_H_
