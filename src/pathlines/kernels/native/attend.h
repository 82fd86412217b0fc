// A_i = sum_j a_ij v_j with a_ij = m_j exp(<q_i, k_j> - c_i): what the two ways of computing attention share.

#ifndef PATHLINES_ATTEND_H_
#define PATHLINES_ATTEND_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.h"
#include "vectors.h"

namespace {

template <typename T>
struct Problem {
  const T *q, *k, *v, *mass, *shift;
  T *out, *top, *norm;  // c_i = top_i + ln norm_i
  int64_t n, m, p, d;
  bool softmax, causal;

  // Keys that row i may attend to.
  int64_t reach(int64_t i) const { return causal ? std::min(m, i + 1) : m; }
};

// Scores lie in [-b, b], b = max_i |q_i| max_j |k_j|. While e^{-2b} is far from the smallest number, b itself serves as
// the shift of the softmax in every row, and nobody has to look for the largest score. A causal row may see light keys
// only: there the lightest mass takes part.
template <typename T>
struct Shifts {
  T query = 0, key = 0;
  bool bounded;

  explicit Shifts(const Problem<T>& s) {
    for (int64_t j = 0; j < s.m; ++j) key = std::max(key, square(s.k + j * s.p, s.p));
    for (int64_t i = 0; i < s.n; ++i) query = std::max(query, square(s.q + i * s.p, s.p));
    bounded = 2 * bound() + (s.causal ? spread(s) : 0) <= (sizeof(T) == 4 ? T(60) : T(600));
  }

  // ln of the heaviest over the lightest mass, infinite where a key has none.
  static T spread(const Problem<T>& s) {
    const auto [least, most] = std::minmax_element(s.mass, s.mass + s.m);
    return *least > 0 ? std::log(*most) - std::log(*least) : std::numeric_limits<T>::infinity();
  }

  T bound() const { return std::sqrt(query * key); }

  static T square(const T* x, int64_t count) {
    constexpr int W = Lanes<T>::width;
    Vec<T> sums = {};
    int64_t c = 0;
    for (; c + W <= count; c += W) sums += load<T>(x + c) * load<T>(x + c);
    T sum = count < W ? 0 : total<T>(sums);
    for (; c < count; ++c) sum += x[c] * x[c];
    return sum;
  }
};

// Rows [first, last) of piece `i` when n rows are cut in pieces of at most `most`, evenly.
struct Cut {
  int64_t n, pieces, size;

  Cut(int64_t n_, int64_t most, int64_t threads, int64_t multiple) : n(n_) {
    const int64_t rounds = (n + most * threads - 1) / (most * threads);
    size = padded((n + rounds * threads - 1) / (rounds * threads), multiple);
    pieces = (n + size - 1) / size;
  }
  int64_t first(int64_t i) const { return i * size; }
  int64_t last(int64_t i) const { return std::min(n, (i + 1) * size); }
};

}  // namespace

#endif  // PATHLINES_ATTEND_H_
