// Self-attention on the sphere as vector fields of whole trajectories:
//
//   dx_i/dt = P_{x_i} v A_i,  A_i = sum_h sum_j a^h_ij V_h x_j,  F = (sum_i m_i Z_i e^{-beta top} - 1)/(2 beta),
//   dF/dt = sum_i m_i c_i e^{-beta top} |dx_i/dt|^2 / v  (c_i = Z_i for softmax, e^shift without normalisation).
//
// ``PairField`` is Q = K = V = I in few dimensions, ``RowField`` everything else: the kernels of attend_short.h and
// attend_long.h, row by row.

#ifndef PATHLINES_FIELDS_H_
#define PATHLINES_FIELDS_H_

#include <memory>

#include "crew.h"
#include "matrices.h"
#include "pairs.h"
#include "runge_kutta.h"

namespace {

// As ctypes hands it over (trajectory.py). Heads without a matrix have the identity; masses sum to one.
struct System {
  int64_t n, d, heard, heads, width, softmax, frozen, opposed, paired;
  double beta, shift, value, top;
  const void *mass, *query, *key, *values;  // n; heads x width x d, twice; heads x d x d
};

// F from sum_i m_i Z_i e^{-beta top}; flat at beta = 0, where it is (|sum_i m_i x_i|^2 - 1)/2.
template <typename T>
inline T energy_of(const System& s, T fraction, T flat) {
  return s.beta > 0 ? (fraction - 1) / (2 * static_cast<T>(s.beta)) : (flat - 1) / 2;
}

template <typename T>
inline T power_of(const System& s, T work) {
  if (s.opposed) return -work;
  return s.value == 0 ? T(0) : work / static_cast<T>(s.value);
}

template <typename T, int C>
class PairField : public Field<T> {
  static constexpr int W = Lanes<T>::width;

 public:
  PairField(const System& s, Crew& crew)
      : s_(s), crew_(crew), sums_(s.n), width_(sums_.width), mass_(width_, 0) {
    this->entries = s.n * C;
    this->size = width_ * C;
    const T* mass = static_cast<const T*>(s.mass);
    std::copy(mass, mass + s.n, mass_.begin());
    bounded_ = 2 * s.beta <= (sizeof(T) == 4 ? 60.0 : 600.0);
  }

  void load_rows(const T* rows, T* x) const override {
    for (int c = 0; c < C; ++c) {
      for (int64_t i = 0; i < s_.n; ++i) x[c * width_ + i] = rows[i * C + c];
      std::fill(x + c * width_ + s_.n, x + (c + 1) * width_, T(0));
    }
  }

  void store_rows(const T* x, T* rows) const override {
    for (int64_t i = 0; i < s_.n; ++i)
      for (int c = 0; c < C; ++c) rows[i * C + c] = x[c * width_ + i];
  }

  void drift(const T* x, T* dx, T& power, T& energy) override {
    const T beta = s_.beta, shift = s_.softmax ? s_.beta : s_.shift;
    sums_.weigh(x, mass_.data(), s_.heard);
    crew_.share(sums_.strips.count, [&](int64_t i) {
      if (!s_.softmax)
        sums_.template strip<true, true>(i, x, beta, shift);
      else if (bounded_)
        sums_.template strip<false, false>(i, x, beta, shift);
      else
        sums_.template strip<true, false>(i, x, beta, shift);
    });
    const T value = s_.value, left = std::exp(shift - beta);
    Vec<T> work = {}, fraction = {}, mean[C] = {};
    for (int64_t i = 0; i < width_; i += W) {
      Vec<T> a[C], y[C], along = {}, speed = {};
      const Vec<T> m = load<T>(&mass_[i]), z = sums_.total_of(C, i);
      const Vec<T> scale = s_.softmax ? value / z : all<T>(value);
      for (int c = 0; c < C; ++c) {
        y[c] = load<T>(x + c * width_ + i);
        a[c] = sums_.total_of(c, i) * scale;
        along += a[c] * y[c];
        mean[c] += m * y[c];
      }
      for (int c = 0; c < C; ++c) {
        a[c] -= along * y[c];
        speed += a[c] * a[c];
        if (i + W > s_.n || i < s_.frozen)
          for (int64_t l = 0; l < W; ++l) a[c][l] = i + l < s_.n && i + l >= s_.frozen ? a[c][l] : 0;
        save<T>(dx + c * width_ + i, a[c]);
      }
      // Tokens beyond n have no mass, and their speed is a number.
      work += m * (s_.softmax ? z : all<T>(left)) * speed;
      fraction += m * z;
    }
    T flat = 0;
    for (int c = 0; c < C; ++c) flat += total<T>(mean[c]) * total<T>(mean[c]);
    power = power_of<T>(s_, total<T>(work));
    energy = energy_of<T>(s_, total<T>(fraction) * (s_.softmax ? T(1) : left), flat);
  }

  void retract(T* x) const override {
    for (int64_t i = 0; i < width_; i += W) {
      Vec<T> y[C], square = {};
      for (int c = 0; c < C; ++c) {
        y[c] = load<T>(x + c * width_ + i);
        square += y[c] * y[c];
      }
      if (i + W > s_.n)
        for (int64_t l = 0; l < W; ++l) square[l] = i + l < s_.n ? square[l] : 1;
      Vec<T> length;
      for (int l = 0; l < W; ++l) length[l] = std::sqrt(square[l]);
      for (int c = 0; c < C; ++c) save<T>(x + c * width_ + i, y[c] / length);
    }
  }

  bool within(const T* x, T deficit) const override {
    auto near = [&](int64_t i, int64_t from) {
      Vec<T> most = {};
      for (int64_t j = from / W * W; j < width_; j += W) {
        Vec<T> sum = {};
        for (int c = 0; c < C; ++c) {
          const Vec<T> gap = load<T>(x + c * width_ + j) - x[c * width_ + i];
          sum += T(0.5) * gap * gap;
        }
        if (j + W > s_.n)
          for (int64_t l = 0; l < W; ++l) sum[l] = j + l < s_.n ? sum[l] : 0;
        most = at_least<T>(sum, most);
      }
      return largest_lane<T>(most) <= deficit;
    };
    for (int64_t i = 0; i < s_.n; ++i)
      if (!near(i, i)) return false;
    return true;
  }

 private:
  const System& s_;
  Crew& crew_;
  PairSums<T, C> sums_;
  int64_t width_;
  std::vector<T> mass_;
  bool bounded_;
};

// Rows of any width, any heads, sums row by row.
template <typename T>
class RowField : public Field<T> {
  static constexpr int W = Lanes<T>::width;

 public:
  RowField(const System& s, Crew& crew, int64_t threads)
      : s_(s), crew_(crew), threads_(threads), out_(s.n * s.d), top_(s.n), norm_(s.n), scaled_(s.n * s.d), query_() {
    this->entries = s.n * s.d;
    this->size = padded(s.n * s.d, W);
    if (s.query) {
      const T* q = static_cast<const T*>(s.query);
      for (int64_t i = 0; i < s.heads * s.width * s.d; ++i) query_.push_back(q[i] * static_cast<T>(s.beta));
    }
  }

  void load_rows(const T* rows, T* x) const override {
    std::copy(rows, rows + this->entries, x);
    std::fill(x + this->entries, x + this->size, T(0));
  }

  void store_rows(const T* x, T* rows) const override { std::copy(x, x + this->entries, rows); }

  void drift(const T* x, T* dx, T& power, T& energy) override {
    std::fill(dx, dx + this->size, T(0));
    for (int64_t h = 0; h < s_.heads; ++h) {
      add_head(h, x, dx);
      if (h == 0) keep_scales();
    }
    const T value = s_.value, *mass = static_cast<const T*>(s_.mass);
    T work = 0, fraction = 0, flat = 0;
    std::vector<T> mean(s_.d, 0);
    for (int64_t i = 0; i < s_.n; ++i) {
      const T *y = x + i * s_.d;
      T *v = dx + i * s_.d, along = 0, speed = 0;
      for (int64_t c = 0; c < s_.d; ++c) {
        v[c] *= value;
        along += v[c] * y[c];
        mean[c] += mass[i] * y[c];
      }
      for (int64_t c = 0; c < s_.d; ++c) {
        v[c] -= along * y[c];
        speed += v[c] * v[c];
      }
      if (i < s_.frozen) std::fill(v, v + s_.d, T(0));
      work += mass[i] * (s_.softmax ? part_[i] : scale_) * speed;
      fraction += mass[i] * part_[i];
    }
    for (const T m : mean) flat += m * m;
    power = power_of<T>(s_, work);
    energy = energy_of<T>(s_, fraction, flat);
  }

  void retract(T* x) const override {
    for (int64_t i = 0; i < s_.n; ++i) {
      T* y = x + i * s_.d;
      const T length = std::sqrt(Shifts<T>::square(y, s_.d));
      for (int64_t c = 0; c < s_.d; ++c) y[c] /= length;
    }
  }

  bool within(const T* x, T deficit) const override {
    for (int64_t i = 0; i < s_.n; ++i)
      for (int64_t j = 0; j < i; ++j) {
        T sum = 0;
        for (int64_t c = 0; c < s_.d; ++c) {
          const T gap = x[i * s_.d + c] - x[j * s_.d + c];
          sum += T(0.5) * gap * gap;
        }
        if (!(sum <= deficit)) return false;
      }
    return true;
  }

 private:
  void add_head(int64_t h, const T* x, T* dx) {
    const int64_t n = s_.n, d = s_.d, inner = s_.query || s_.key ? s_.width : d;
    const T shift = s_.shift, *rows = x;
    if (!s_.query) {
      for (int64_t i = 0; i < n * d; ++i) scaled_[i] = x[i] * static_cast<T>(s_.beta);
      rows = scaled_.data();
    }
    Matrices<T> matrices;
    matrices.width = d;
    auto give = [&](int k, const T* all, int64_t count) {
      matrices.data[k] = all ? all + h * count * d : nullptr;
      matrices.rows[k] = all ? count : 0;
    };
    give(0, query_.empty() ? nullptr : query_.data(), s_.width);
    give(1, static_cast<const T*>(s_.key), s_.width);
    give(2, static_cast<const T*>(s_.values), d);
    const Problem<T> given{rows, x, x, static_cast<const T*>(s_.mass), &shift, out_.data(), top_.data(), norm_.data(),
                           n, s_.heard, inner, d, s_.softmax != 0, false};
    const Problem<T> s = matrices.applied(given, room_, [&](int64_t count, const auto& work) { crew_.share(count, work); });
    const Shifts<T> shifts(s);
    const bool is_short = std::max(s.p, s.d) <= kLongestShort;
    if (is_short)
      masses_.pack(s);
    else
      packed_.pack(s);
    const Cut cut(n, is_short ? 256 : kTile, threads_ > 1 ? 4 * threads_ : 1, is_short ? W : kRows);
    crew_.share(cut.pieces, [&](int64_t i) {
      static thread_local Scratch<T> scratch;
      if (is_short)
        short_rows<T>(s, masses_, shifts, cut.first(i), cut.last(i));
      else
        long_rows<T>(s, packed_, shifts, scratch, cut.first(i), cut.last(i));
    });
    for (int64_t i = 0; i < n * d; ++i) dx[i] += out_[i];
  }

  // Z_i e^{-beta top}, and what takes its place without normalisation.
  void keep_scales() {
    const T level = s_.beta * s_.top;
    scale_ = std::exp(static_cast<T>(s_.shift) - level);
    part_.resize(s_.n);
    for (int64_t i = 0; i < s_.n; ++i) part_[i] = std::exp(top_[i] - level) * norm_[i];
  }

  const System& s_;
  Crew& crew_;
  int64_t threads_;
  std::vector<T> out_, top_, norm_, scaled_, query_, room_, part_;
  LogMasses<T> masses_;
  Packed<T> packed_;
  T scale_ = 0;
};

template <typename T>
std::unique_ptr<Field<T>> field_for(const System& s, Crew& crew, int64_t threads) {
  if (s.paired) switch (s.d) {
    case 2: return std::make_unique<PairField<T, 2>>(s, crew);
    case 3: return std::make_unique<PairField<T, 3>>(s, crew);
    case 4: return std::make_unique<PairField<T, 4>>(s, crew);
  }
  return std::make_unique<RowField<T>>(s, crew, threads);
}

}  // namespace

#endif  // PATHLINES_FIELDS_H_
