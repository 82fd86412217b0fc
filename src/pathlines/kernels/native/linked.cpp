// Clusters of many snapshots: connected components of the graph u_ij = |x_i - x_j|^2 / 2 <= delta, a plain function that
// ctypes calls. A component grows token by token, each looking at those that nobody has reached yet: O(n d) for one
// cluster, O(n^2 d) for isolated tokens.

#include <vector>

#include "crew.h"
#include "vectors.h"

namespace {

template <typename T>
int64_t components(const T* rows, int64_t n, int64_t d, T delta) {
  constexpr int W = Lanes<T>::width;
  const int64_t width = padded(n, W);
  std::vector<T> x(width * d, 0), own(d);  // those not reached yet, components apart
  std::vector<T> queue;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < d; ++c) x[c * width + i] = rows[i * d + c];
  int64_t left = n, count = 0;
  auto take = [&](int64_t i) {
    for (int64_t c = 0; c < d; ++c) queue.push_back(x[c * width + i]);
  };
  while (left > 0) {
    ++count;
    --left;
    take(left);
    while (!queue.empty()) {
      std::copy(queue.end() - d, queue.end(), own.begin());
      queue.resize(queue.size() - d);
      int64_t kept = 0;
      for (int64_t j = 0; j < left; j += W) {
        Vec<T> u = {};
        for (int64_t c = 0; c < d; ++c) {
          const Vec<T> gap = load<T>(&x[c * width + j]) - own[c];
          u += T(0.5) * gap * gap;
        }
        const int64_t real = std::min<int64_t>(W, left - j);
        for (int64_t l = 0; l < real; ++l) {
          if (u[l] <= delta) {
            take(j + l);
          } else {
            if (kept != j + l)
              for (int64_t c = 0; c < d; ++c) x[c * width + kept] = x[c * width + j + l];
            ++kept;
          }
        }
      }
      left = kept;
    }
  }
  return count;
}

template <typename T>
void count_all(const T* states, int64_t many, int64_t n, int64_t d, double delta, int64_t threads, int64_t* counts) {
  Crew crew(threads);
  const int64_t pieces = std::min<int64_t>(many, 64 * threads);
  crew.share(pieces, [&](int64_t p) {
    for (int64_t k = p; k < many; k += pieces) counts[k] = components<T>(states + k * n * d, n, d, static_cast<T>(delta));
  });
}

}  // namespace

extern "C" {
void pathlines_linked_float32(const float* x, int64_t many, int64_t n, int64_t d, double delta, int64_t threads, int64_t* counts) {
  count_all<float>(x, many, n, d, delta, threads, counts);
}
void pathlines_linked_float64(const double* x, int64_t many, int64_t n, int64_t d, double delta, int64_t threads, int64_t* counts) {
  count_all<double>(x, many, n, d, delta, threads, counts);
}
}
