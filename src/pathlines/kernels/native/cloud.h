// Gaussian clouds under softmax attention in scale-free variables, one cloud a lane:
//
//   Y' = m - eta Y,   (ln rho)' = 2 eta,   t' = rho_0/rho,   m = sum_h C_h Y (Y^T A_h Y)/G,   eta = <m, Y>,
//
// |Y| = 1, G = sum_h |C_h||A_h|; elsewhere m and t' are divided by |Y|^2, and eta by |Y|^4. A state is Y, row by row,
// then ln rho and t.

#ifndef PATHLINES_CLOUD_H_
#define PATHLINES_CLOUD_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "vectors.h"

namespace {

using Real = Vec<double>;
using Mask = Lanes<double>::Integers;
constexpr int kLanes = Lanes<double>::width;

inline Real root(Real x) {
  for (int l = 0; l < kLanes; ++l) x[l] = std::sqrt(x[l]);
  return x;
}

inline Real magnitude(Real x) { return x < 0 ? -x : x; }

struct Clouds {
  const int64_t heads, d, r, n;    // Y is d x r, of n entries
  std::vector<Real> value, score;  // C_h/G and A_h
  Real log_start, moves;           // ln rho_0, and 1 where G > 0
  std::vector<Real> turned, inner, carried, lifted, back, mean;

  Clouds(int64_t heads_, int64_t d_, int64_t r_)
      : heads(heads_), d(d_), r(r_), n(d_ * r_), value(heads * d * d), score(heads * d * d), log_start(), moves(),
        turned(n), inner(r * r), carried(n), lifted(n), back(d * d), mean(n) {}

  void load(int lane, const double* C, const double* A, double log_size) {
    const int64_t square = d * d;
    double pace = 0;
    for (int64_t h = 0; h < heads; ++h) {
      double c = 0, a = 0;
      for (int64_t i = h * square; i < (h + 1) * square; ++i) c += C[i] * C[i], a += A[i] * A[i];
      pace += std::sqrt(c) * std::sqrt(a);
    }
    for (int64_t i = 0; i < heads * square; ++i) {
      value[i][lane] = C[i] / (pace > 0 ? pace : 1);
      score[i][lane] = A[i];
    }
    log_start[lane] = log_size;
    moves[lane] = pace > 0;
  }

  // The slope; with `retracted`, that at the point of |Y| = 1 below y.
  void drift(const Real* y, Real* slope, bool retracted) {
    for (int64_t m = 0; m < n; ++m) slope[m] = Real{};
    for (int64_t h = 0; h < heads; ++h) {
      attend(y, h);
      multiply(carried.data(), inner.data(), slope, d, r, r, true);
    }
    Real square = {}, along = {};
    for (int64_t m = 0; m < n; ++m) {
      square += y[m] * y[m];
      along += slope[m] * y[m];
    }
    const Real inverse = 1.0 / square, eta = along * inverse * inverse;
    const Real scale = retracted ? 1.0 / root(square) : all<double>(1);
    for (int64_t m = 0; m < n; ++m) slope[m] = (slope[m] * inverse - eta * y[m]) * scale;
    slope[n] = 2.0 * eta;
    slope[n + 1] = moves * inverse * exponential<double>(log_start - y[n]);
  }

  // dF(Y)/dY at |Y| = 1, and d eta/dY.
  void jacobian(const Real* y, Real* matrix, Real* gradient) {
    for (int64_t m = 0; m < n; ++m) mean[m] = gradient[m] = Real{};
    for (int64_t m = 0; m < n * n; ++m) matrix[m] = Real{};
    for (int64_t h = 0; h < heads; ++h) {
      const Real *C = &value[h * d * d], *A = &score[h * d * d];
      attend(y, h);
      multiply(carried.data(), inner.data(), mean.data(), d, r, r, true);
      for (int64_t j = 0; j < r; ++j)
        for (int64_t i = 0; i < d; ++i) {
          Real sum = {};
          for (int64_t k = 0; k < d; ++k) sum += y[k * r + j] * A[k * d + i];
          lifted[j * d + i] = sum;
        }
      multiply(carried.data(), lifted.data(), back.data(), d, r, d, false);
      for (int64_t a = 0; a < d; ++a)
        for (int64_t b = 0; b < r; ++b) {
          Real* row = matrix + (a * r + b) * n;
          for (int64_t i = 0; i < d; ++i) {
            const Real outer = C[a * d + i], rise = turned[i * r + b];
            for (int64_t j = 0; j < r; ++j) row[i * r + j] += outer * inner[j * r + b] + carried[a * r + j] * rise;
            row[i * r + b] += back[a * d + i];
          }
        }
    }
    Real eta = {};
    for (int64_t p = 0; p < n; ++p) eta += mean[p] * y[p];
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = 0; q < n; ++q) gradient[q] += matrix[p * n + q] * y[p];
    for (int64_t q = 0; q < n; ++q) gradient[q] += mean[q] - 4.0 * eta * y[q];
    for (int64_t p = 0; p < n; ++p) {
      const Real twice = 2.0 * mean[p];
      for (int64_t q = 0; q < n; ++q) matrix[p * n + q] -= twice * y[q] + y[p] * gradient[q];
      matrix[p * n + p] -= eta;
    }
  }

 private:
  // c (+)= a b, of p x q and q x s numbers.
  static void multiply(const Real* a, const Real* b, Real* c, int64_t p, int64_t q, int64_t s, bool add) {
    for (int64_t i = 0; i < p; ++i)
      for (int64_t j = 0; j < s; ++j) {
        Real sum = add ? c[i * s + j] : Real{};
        for (int64_t k = 0; k < q; ++k) sum += a[i * q + k] * b[k * s + j];
        c[i * s + j] = sum;
      }
  }

  // turned = A Y, inner = Y^T A Y, carried = C Y of one head.
  void attend(const Real* y, int64_t h) {
    multiply(&score[h * d * d], y, turned.data(), d, d, r, false);
    multiply(&value[h * d * d], y, carried.data(), d, d, r, false);
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < r; ++j) {
        Real sum = {};
        for (int64_t k = 0; k < d; ++k) sum += y[k * r + i] * turned[k * r + j];
        inner[i * r + j] = sum;
      }
  }
};

// L U = P M, one matrix a lane. Rows change places only where a pivot is ten times smaller than another: lanes that
// differ in their order cost more than the elimination.
struct Factors {
  int64_t n;
  std::vector<Real> at, pivot;
  std::vector<Mask> order;
  std::vector<bool> moved;

  explicit Factors(int64_t size) : n(size), at(size * size), pivot(size), order(size), moved(size) {}

  void factor() {
    for (int64_t k = 0; k < n; ++k) {
      Real most = magnitude(at[k * n + k]), own = 10.0 * most;
      Mask best = Mask{} + k;
      for (int64_t i = k + 1; i < n; ++i) {
        const Real size = magnitude(at[i * n + k]);
        const Mask larger = (size > most) & (size > own);
        most = larger ? size : most;
        best = larger ? Mask{} + i : best;
      }
      order[k] = best;
      moved[k] = false;
      for (int l = 0; l < kLanes; ++l) {
        if (best[l] == k) continue;
        moved[k] = true;
        for (int64_t j = 0; j < n; ++j) {
          const double kept = at[k * n + j][l];
          at[k * n + j][l] = at[best[l] * n + j][l];
          at[best[l] * n + j][l] = kept;
        }
      }
      pivot[k] = 1.0 / at[k * n + k];
      for (int64_t i = k + 1; i < n; ++i) {
        const Real factor = at[i * n + k] * pivot[k];
        at[i * n + k] = factor;
        for (int64_t j = k + 1; j < n; ++j) at[i * n + j] -= factor * at[k * n + j];
      }
    }
  }

  void solve(Real* x) const {
    for (int64_t k = 0; k < n; ++k) {
      if (!moved[k]) continue;
      for (int l = 0; l < kLanes; ++l) {
        const double kept = x[k][l];
        x[k][l] = x[order[k][l]][l];
        x[order[k][l]][l] = kept;
      }
    }
    for (int64_t i = 1; i < n; ++i) {
      Real sum = x[i];
      for (int64_t k = 0; k < i; ++k) sum -= at[i * n + k] * x[k];
      x[i] = sum;
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      Real sum = x[i];
      for (int64_t k = i + 1; k < n; ++k) sum -= at[i * n + k] * x[k];
      x[i] = sum * pivot[i];
    }
  }
};

// What a cloud does along the axes of Y: one-sided Jacobi rotations make its rows orthogonal, and its slope turns with
// them. (speed of Y Y^T in the metric of Bures, largest rate of growth of a variance beside that of rho.)
struct Axes {
  double speed, fastest;

  Axes(std::vector<double> y, std::vector<double> slope, int64_t d, int64_t r, double seen) : speed(0), fastest(-INFINITY) {
    auto dot = [r](const std::vector<double>& a, int64_t i, const std::vector<double>& b, int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < r; ++k) sum += a[i * r + k] * b[j * r + k];
      return sum;
    };
    double worst = 1;
    for (int sweep = 0; sweep < 30 && worst > 1e-15; ++sweep) {
      worst = 0;
      for (int64_t p = 0; p < d; ++p)
        for (int64_t q = p + 1; q < d; ++q) {
          const double pp = dot(y, p, y, p), qq = dot(y, q, y, q), pq = dot(y, p, y, q);
          const double scale = std::sqrt(pp * qq), cosine = scale > 0 ? std::fabs(pq) / scale : 0;
          worst = std::max(worst, cosine);
          if (cosine <= 2.3e-16) continue;
          const double zeta = (qq - pp) / (2 * pq);
          const double t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
          const double c = 1 / std::sqrt(1 + t * t), s = c * t;
          for (auto* rows : {&y, &slope})
            for (int64_t k = 0; k < r; ++k) {
              double &a = (*rows)[p * r + k], &b = (*rows)[q * r + k];
              const double turned = c * a - s * b;
              b = s * a + c * b;
              a = turned;
            }
        }
    }
    for (int64_t i = 0; i < d; ++i) {
      const double own = dot(y, i, y, i);
      if (own > seen * seen) fastest = std::max(fastest, 2 * dot(y, i, slope, i) / own);
      for (int64_t j = 0; j < d; ++j) {
        const double moved = dot(y, i, slope, j) + dot(y, j, slope, i), pair = own + dot(y, j, y, j);
        if (pair > 0) speed += moved * moved / pair / 2;
      }
    }
    speed = std::sqrt(speed);
  }
};

}  // namespace

#endif  // PATHLINES_CLOUD_H_
