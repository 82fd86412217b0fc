// Embedded Runge-Kutta on states with a retraction, steps and their control as in integrate/advance.py:
//
//   k_i = f(N(x + h sum_j a_ij k_j)),  y = x + h sum_i b_i k_i,  x <- N(y),
//
// the last slope being the next step's first. Errors h sum_i e_i k_i are measured against atol + rtol |x|, entry by entry,
// by their root mean square; two estimates combine as in DOP853. Steps land on the recorded times.

#ifndef PATHLINES_RUNGE_KUTTA_H_
#define PATHLINES_RUNGE_KUTTA_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "vectors.h"

namespace {

constexpr int kMostSlopes = 16;
enum Status : int64_t { kOk = 0, kStalled = 1, kDiverged = 2 };

// As ctypes hands it over (trajectory.py): numbers of a method and of its step control.
struct Scheme {
  int64_t stages, estimates, order, error_order, project_stages, adaptive;
  const double *a, *b, *e;  // stages x stages, stages, estimates x (stages + 1)
  double rtol, atol;
};

// What a run needs to go on: the fields of ``Carry`` in advance.py besides its state and slope.
template <typename T>
struct Clock {
  T t, h, work, power, off_domain, local_error;
  int64_t accepted, rejected, status;
};

// A vector field on rows that lie in `size` numbers, a multiple of the vectors, those beyond the rows being zero.
template <typename T>
struct Field {
  int64_t entries = 0, size = 0;  // numbers of a state, and with the padding
  virtual ~Field() = default;
  virtual void load_rows(const T* rows, T* x) const = 0;
  virtual void store_rows(const T* x, T* rows) const = 0;
  // dx = f(x); the rate of the energy and the energy by the sums that f needs.
  virtual void drift(const T* x, T* dx, T& power, T& energy) = 0;
  virtual void retract(T* x) const = 0;
  // Whether all pairs of rows are within that deficit.
  virtual bool within(const T* x, T deficit) const = 0;
};

// sum_i w_i k_i over the slopes with w_i != 0.
template <typename T>
struct Mix {
  int count = 0;
  T factor[kMostSlopes];
  const T* slope[kMostSlopes];

  Mix(const double* weights, int64_t used, T* const* k) {
    for (int64_t i = 0; i < used; ++i) {
      if (weights[i] == 0) continue;
      factor[count] = static_cast<T>(weights[i]);
      slope[count++] = k[i];
    }
  }

  Vec<T> at(int64_t m) const {
    Vec<T> sum = {};
    for (int i = 0; i < count; ++i) sum += factor[i] * load<T>(slope[i] + m);
    return sum;
  }
};

template <typename T>
inline Vec<T> magnitude(Vec<T> x) {
  return x < 0 ? -x : x;
}

template <typename T>
inline T largest_lane(Vec<T> x) {
  T most = x[0];
  for (int l = 1; l < Lanes<T>::width; ++l) most = std::max(most, x[l]);
  return most;
}

template <typename T>
class Stepper {
  static constexpr int W = Lanes<T>::width;

 public:
  Stepper(Field<T>& field, const Scheme& scheme)
      : field_(field), s_(scheme), room_((scheme.stages + 4) * field.size, T(0)) {
    for (int64_t i = 0; i <= s_.stages; ++i) k_[i] = &room_[i * field.size];
    x_ = &room_[(s_.stages + 1) * field.size];
    raw_ = x_ + field.size;
    y_ = raw_ + field.size;
  }

  T* state() { return x_; }
  T* slope() { return k_[0]; }
  T energy() const { return energy_; }

  // The slope at the state, for a run that begins; one that goes on has its slope and lacks its energy.
  void begin(Clock<T>& c, bool fresh) {
    T power = 0;
    field_.drift(x_, fresh ? k_[0] : y_, power, energy_);
    if (fresh) c.power = power;
    if (s_.adaptive && !(c.h > 0)) c.h = first_step();
  }

  // One attempted step towards `target`: accepted with its error estimate, or retried smaller.
  void step(Clock<T>& c, T target) {
    const int64_t stages = s_.stages, size = field_.size;
    const T remaining = target - c.t;
    const bool lands = c.h * (1 + T(1e-9)) >= remaining;
    const T h = lands ? remaining : c.h;
    T powers[kMostSlopes] = {c.power}, energy = 0;
    for (int64_t i = 1; i < stages; ++i) {
      combine(s_.a + i * stages, i, h, y_);
      if (s_.project_stages) field_.retract(y_);
      field_.drift(y_, k_[i], powers[i], energy);
    }
    combine(s_.b, stages, h, raw_);
    std::copy(raw_, raw_ + size, y_);
    field_.retract(y_);
    field_.drift(y_, k_[stages], powers[stages], energy);
    bool ok = finite(y_) && finite(k_[stages]);
    T proposal = c.h, error = 0;
    if (s_.adaptive) {
      T ratio = 0;
      const bool known = ok;
      measure(h, ratio, error);
      if (!known || !std::isfinite(ratio)) ratio = T(1e10);
      const T power = std::pow(std::max(ratio, T(1e-16)), T(-1) / static_cast<T>(s_.error_order + 1));
      const T growth = std::min(std::max(T(0.9) * power, T(0.2)), T(10));
      ok = ratio <= 1;
      proposal = ok && h < c.h ? std::max(c.h, h * growth) : h * growth;
      const T least = 8 * std::numeric_limits<T>::epsilon() * std::max(std::abs(c.t), std::abs(target));
      if (!ok && proposal < least) c.status = known ? kStalled : kDiverged;
    } else if (!ok) {
      c.status = kDiverged;
    }
    c.h = proposal;
    if (!ok) {
      ++c.rejected;
      return;
    }
    ++c.accepted;
    c.off_domain = std::max(c.off_domain, moved());
    c.local_error += error;
    c.t = lands ? target : c.t + h;
    T work = 0;
    for (int64_t i = 0; i < stages; ++i) work += static_cast<T>(s_.b[i]) * powers[i];
    c.work += h * work;
    c.power = powers[stages];
    energy_ = energy;
    std::swap(x_, y_);
    std::swap(k_[0], k_[stages]);
  }

 private:
  void combine(const double* weights, int64_t used, T h, T* to) const {
    const Mix<T> mix(weights, used, k_);
    for (int64_t m = 0; m < field_.size; m += W) save<T>(to + m, load<T>(x_ + m) + h * mix.at(m));
  }

  bool finite(const T* x) const {
    Vec<T> sum = {};
    for (int64_t m = 0; m < field_.size; m += W) sum += load<T>(x + m) * T(0);
    return total<T>(sum) == 0;
  }

  Vec<T> scale(Vec<T> a, Vec<T> b) const {
    const Vec<T> size = static_cast<T>(s_.atol) + static_cast<T>(s_.rtol) * at_least<T>(magnitude<T>(a), magnitude<T>(b));
    return size > 0 ? size : all<T>(1);
  }

  T first_step() const {
    Vec<T> sizes = {}, speeds = {};
    for (int64_t m = 0; m < field_.size; m += W) {
      const Vec<T> x = load<T>(x_ + m), s = scale(x, x), v = load<T>(k_[0] + m) / s;
      sizes += (x / s) * (x / s);
      speeds += v * v;
    }
    const T size = std::sqrt(total<T>(sizes) / field_.entries), speed = std::sqrt(total<T>(speeds) / field_.entries);
    const T share = std::pow(std::max(static_cast<T>(s_.rtol), T(1e-14)), T(1) / static_cast<T>(s_.order));
    return speed > 0 ? std::min(T(0.1) * share * size / speed, T(1)) : T(1e-3);
  }

  // Error over tolerance, and the size of the local error.
  void measure(T h, T& ratio, T& size) const {
    T over[2] = {}, most = 0;
    for (int64_t e = 0; e < s_.estimates; ++e) {
      const Mix<T> mix(s_.e + e * (s_.stages + 1), s_.stages + 1, k_);
      Vec<T> squares = {}, top = {};
      for (int64_t m = 0; m < field_.size; m += W) {
        const Vec<T> error = h * mix.at(m), r = error / scale(load<T>(x_ + m), load<T>(y_ + m));
        squares += r * r;
        top = at_least<T>(magnitude<T>(error), top);
      }
      over[e] = std::sqrt(total<T>(squares) / field_.entries);
      if (e == 0) most = largest_lane<T>(top);
    }
    ratio = over[0];
    size = most;
    if (s_.estimates < 2) return;
    const T both = std::sqrt(over[0] * over[0] + T(0.01) * over[1] * over[1]);
    const T share = both > 0 ? over[0] / both : 0;
    ratio = over[0] * share;
    size = most * share;
  }

  T moved() const {
    Vec<T> most = {};
    for (int64_t m = 0; m < field_.size; m += W)
      most = at_least<T>(magnitude<T>(load<T>(raw_ + m) - load<T>(y_ + m)), most);
    return largest_lane<T>(most);
  }

  Field<T>& field_;
  const Scheme& s_;
  std::vector<T> room_;
  T *k_[kMostSlopes], *x_, *raw_, *y_, energy_ = 0;
};

}  // namespace

#endif  // PATHLINES_RUNGE_KUTTA_H_
