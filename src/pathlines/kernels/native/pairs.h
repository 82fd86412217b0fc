// Sums over all pairs of few components whose scores are symmetric, each exponential evaluated once for both of its ends:
//
//   A_i = sum_j w_ij m_j x_j,  Z_i = sum_j w_ij m_j,  w_ij = w_ji = exp(beta <x_i, x_j> - shift).
//
// Components lie apart (x[c * width + i]), W tokens in a vector. A tile is the W x W weights between two vectors of tokens:
// kept in registers it is added to the sums of its rows, turned, and added to those of its columns. Tiles are handed out in
// strips that depend on n alone and have sums of their own, so that bits do not depend on who computes which.

#ifndef PATHLINES_PAIRS_H_
#define PATHLINES_PAIRS_H_

#include <vector>

#include "vectors.h"

namespace {

// Rows of tiles of an upper triangle in strips of about equal area.
struct Strips {
  int64_t blocks, count;
  std::vector<int64_t> cut;

  Strips(int64_t blocks_, int64_t most) : blocks(blocks_), count(std::max<int64_t>(1, std::min(most, blocks_ / 3))) {
    const double whole = 0.5 * blocks * (blocks + 1);
    double area = 0;
    cut.push_back(0);
    for (int64_t i = 0; i < blocks; ++i) {
      area += blocks - i;
      if (static_cast<int64_t>(cut.size()) < count && area >= whole * cut.size() / count) cut.push_back(i + 1);
    }
    count = cut.size();
    cut.push_back(blocks);
  }
};

template <typename T, int C>
struct PairSums {
  static constexpr int W = Lanes<T>::width, K = W < 4 ? W : 4;
  int64_t width;
  Strips strips;
  std::vector<T> weighted;  // (m_j x_j, m_j), token by token
  std::vector<T> sums;      // of each strip: C components and Z, width numbers each

  explicit PairSums(int64_t n)
      : width(padded(n, W)), strips(width / W, n < 96 ? 1 : n < 1024 ? 4 : 16), weighted(width * (C + 1), 0),
        sums(strips.count * width * (C + 1), 0) {}

  void weigh(const T* x, const T* mass, int64_t m) {
    for (int64_t j = 0; j < m; ++j) {
      for (int c = 0; c < C; ++c) weighted[j * (C + 1) + c] = mass[j] * x[c * width + j];
      weighted[j * (C + 1) + C] = mass[j];
    }
  }

  // Weights of W tokens, as rows of q = beta log2(e) x, with each of the W tokens from j on. `kAny`: scores of any size.
  template <bool kAny, bool kCapped>
  static void tile_weights(const Vec<T>* q, const T* x, int64_t width, int64_t j, Vec<T> below, Vec<T>* w) {
#pragma GCC unroll 4
    for (int k0 = 0; k0 < W; k0 += K) {
#pragma GCC unroll 4
      for (int k = k0; k < k0 + K; ++k) {
        w[k] = below;
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) w[k] += q[c] * x[c * width + j + k];
        if (kCapped) w[k] = at_most<T>(w[k], all<T>(Lanes<T>::highest * Lanes<T>::log2e));
      }
      powers_of_two<T, K, kAny>(w + k0);
    }
  }

  static void add(Vec<T>* sum, const Vec<T>* w, const T* weighted) {
#pragma GCC unroll 16
    for (int k = 0; k < W; ++k)
#pragma GCC unroll 9
      for (int c = 0; c <= C; ++c) sum[c] += w[k] * weighted[k * (C + 1) + c];
  }

  template <bool kAny, bool kCapped>
  void strip(int64_t s, const T* x, T beta, T shift) {
    T* out = &sums[s * width * (C + 1)];
    std::fill(out, out + width * (C + 1), T(0));
    const Vec<T> below = all<T>(-shift * Lanes<T>::log2e);
    const T scale = beta * Lanes<T>::log2e;
    for (int64_t i = strips.cut[s] * W; i < strips.cut[s + 1] * W; i += W) {
      Vec<T> q[C], own[C + 1], w[W];
      for (int c = 0; c < C; ++c) q[c] = load<T>(x + c * width + i) * scale;
      for (int c = 0; c <= C; ++c) own[c] = load<T>(out + c * width + i);
      tile_weights<kAny, kCapped>(q, x, width, i, below, w);
      add(own, w, &weighted[i * (C + 1)]);
      for (int64_t j = i + W; j < width; j += W) {
        tile_weights<kAny, kCapped>(q, x, width, j, below, w);
        add(own, w, &weighted[j * (C + 1)]);
        transpose<T>(w);
        Vec<T> theirs[C + 1];
        for (int c = 0; c <= C; ++c) theirs[c] = load<T>(out + c * width + j);
        add(theirs, w, &weighted[i * (C + 1)]);
        for (int c = 0; c <= C; ++c) save<T>(out + c * width + j, theirs[c]);
      }
      for (int c = 0; c <= C; ++c) save<T>(out + c * width + i, own[c]);
    }
  }

  // Component c (or Z, c = C) of the sums of W tokens from i on.
  Vec<T> total_of(int c, int64_t i) const {
    Vec<T> sum = load<T>(&sums[c * width + i]);
    for (int64_t s = 1; s < strips.count; ++s) sum += load<T>(&sums[(s * (C + 1) + c) * width + i]);
    return sum;
  }
};

}  // namespace

#endif  // PATHLINES_PAIRS_H_
