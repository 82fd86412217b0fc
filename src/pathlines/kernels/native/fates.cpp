// What becomes of Gaussian clouds under softmax attention: each is followed until its fate is decided, first by an
// explicit Runge-Kutta pair with two estimates (DOP853), later by a Rosenbrock method with the exact Jacobian (Rodas5P).
// Coefficients are given by the caller. A lane that is done takes the next cloud, so none waits for the slowest.

#include <atomic>
#include <limits>

#include "cloud.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

struct Explicit {
  int64_t stages;
  const double *a, *b, *fifth, *third;
};

struct Stiff {
  int64_t stages;
  const double *a, *c;
  double gamma;
};

struct Rules {
  Explicit pair;
  Stiff stiff;
  double rtol, growth, still, shrunk, settled, seen, halt;
  int64_t turn, most_steps;
};

// Where each cloud is: arrays with one row a cloud.
struct Places {
  int64_t count, heads, d, r;
  const double *values, *scores, *log_starts;
  double *shapes, *log_sizes, *times, *clocks, *early;
  std::vector<double> steps;      // h, kept from one method to the next
  std::vector<int64_t> attempts;
};

class Group {
 public:
  Group(const Rules& rules_, Places& places_, bool stiff_, double end_)
      : rules(rules_), places(places_), clouds(places_.heads, places_.d, places_.r), stiff(stiff_), end(end_),
        n(places_.d * places_.r), size(n + 2), stages(stiff_ ? rules_.stiff.stages : rules_.pair.stages + 1), y(size),
        raw(size), k(stages * size), slope(size), fresh(size), error(size), gradient(n), factors(stiff_ ? n : 0) {
    for (Lane& lane : lanes) lane = Lane{-1, 0, 1e-3, 0, 0, 0, false};
  }

  void follow(const std::vector<int64_t>& jobs, std::atomic<int64_t>& next) {
    for (;;) {
      bool busy = false, filled = false;
      for (int l = 0; l < kLanes; ++l) {
        if (lanes[l].job < 0) {
          const int64_t i = next++;
          if (i < static_cast<int64_t>(jobs.size())) begin(l, jobs[i]), filled = true;
        }
        busy |= lanes[l].job >= 0;
      }
      if (!busy) return;
      if (filled) {
        clouds.drift(y.data(), slope.data(), false);
        for (int l = 0; l < kLanes; ++l)
          if (lanes[l].begun && ripe(l)) end_turn(l);
      }
      for (Lane& lane : lanes) lane.begun = false;
      attempt();
    }
  }

 private:
  struct Lane {
    int64_t job;
    double s, h, target;
    int64_t attempts, in_turn;
    bool begun;
  };

  struct Term {
    double weight;
    const Real* slope;
  };

  const Rules& rules;
  Places& places;
  Clouds clouds;
  const bool stiff;
  const double end;
  const int64_t n, size, stages;
  std::vector<Real> y, raw, k, slope, fresh, error, gradient;
  std::vector<Term> terms;
  Factors factors;
  Lane lanes[kLanes];

  void begin(int l, int64_t job) {
    const int64_t matrices = places.heads * places.d * places.d;
    clouds.load(l, places.values + job * matrices, places.scores + job * matrices, places.log_starts[job]);
    for (int64_t m = 0; m < n; ++m) y[m][l] = places.shapes[job * n + m];
    y[n][l] = places.log_sizes[job];
    y[n + 1][l] = places.times[job];
    lanes[l] = Lane{job, places.clocks[job], places.steps[job], 0, places.attempts[job], 0, true};
    aim(lanes[l]);
  }

  void aim(Lane& lane) const { lane.target = lane.s < rules.halt && rules.halt < end ? rules.halt : end; }

  // x + scale sum_j w_j k_j; x may be where the result goes.
  void combined(const Real* x, const double* weights, int64_t used, Real scale, Real* to) {
    terms.clear();
    for (int64_t j = 0; j < used; ++j)
      if (weights[j] != 0) terms.push_back({weights[j], &k[j * size]});
    for (int64_t m = 0; m < size; ++m) {
      Real sum = {};
      for (const Term& term : terms) sum += term.weight * term.slope[m];
      to[m] = (x ? x[m] : Real{}) + scale * sum;
    }
  }

  // The step to `raw`, its point of |Y| = 1 in `fresh`, and the error over the tolerance.
  Real explicit_step(Real step) {
    const Explicit& pair = rules.pair;
    std::copy(slope.begin(), slope.end(), k.begin());
    for (int64_t i = 1; i < pair.stages; ++i) {
      combined(y.data(), pair.a + i * pair.stages, i, step, raw.data());
      clouds.drift(raw.data(), &k[i * size], true);
    }
    combined(y.data(), pair.b, pair.stages, step, raw.data());
    retract();
    Real* last = &k[pair.stages * size];
    clouds.drift(fresh.data(), last, false);
    const Real first = ratio(pair.fifth, step), second = ratio(pair.third, step);
    const Real sum = root(first * first + 0.01 * second * second);
    std::copy(last, last + size, raw.begin());
    return sum > 0 ? first * first / sum : sum;
  }

  Real ratio(const double* weights, Real step) {
    combined(nullptr, weights, rules.pair.stages + 1, step, error.data());
    return over_tolerance();
  }

  Real stiff_step(Real step) {
    const Stiff& method = rules.stiff;
    const Real inverse = 1.0 / step, scaled = method.gamma * step, diagonal = 1.0 / scaled;
    clouds.jacobian(y.data(), factors.at.data(), gradient.data());
    for (Real& x : factors.at) x = -x;
    for (int64_t m = 0; m < n; ++m) factors.at[m * n + m] += diagonal;
    factors.factor();
    for (int64_t i = 0; i < method.stages; ++i) {
      Real* now = &k[i * size];
      if (i == 0) {
        std::copy(slope.begin(), slope.end(), now);
      } else {
        combined(y.data(), method.a + i * method.stages, i, all<double>(1), raw.data());
        clouds.drift(raw.data(), now, false);
        combined(now, method.c + i * method.stages, i, inverse, now);
      }
      factors.solve(now);
      Real growth = {}, along = {};
      for (int64_t m = 0; m < n; ++m) {
        growth += gradient[m] * now[m];
        along += y[m] * now[m];
      }
      now[n] = scaled * (now[n] + 2.0 * growth);
      now[n + 1] = scaled * (now[n + 1] - slope[n + 1] * (2.0 * along + now[n]));
    }
    const Real* last = &k[(method.stages - 1) * size];
    for (int64_t m = 0; m < size; ++m) {
      error[m] = last[m];
      raw[m] += last[m];
    }
    retract();
    const Real result = over_tolerance();
    clouds.drift(fresh.data(), raw.data(), false);
    return result;
  }

  void retract() {
    Real square = {};
    for (int64_t m = 0; m < n; ++m) square += raw[m] * raw[m];
    const Real inverse = 1.0 / root(square);
    for (int64_t m = 0; m < n; ++m) fresh[m] = raw[m] * inverse;
    for (int l = 0; l < kLanes; ++l) fresh[n][l] = raw[n][l] + std::log(square[l]);
    fresh[n + 1] = raw[n + 1];
  }

  Real over_tolerance() const {
    Real sum = {};
    for (int64_t m = 0; m < size; ++m) {
      const Real a = magnitude(y[m]), b = magnitude(fresh[m]);
      const Real x = error[m] / (rules.rtol + rules.rtol * (a > b ? a : b));
      sum += x * x;
    }
    return root(sum / static_cast<double>(size));
  }

  // One step of every lane, accepted or tried again smaller; `raw` holds the slope at its end.
  void attempt() {
    Real step = all<double>(1);
    bool lands[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
      if (lanes[l].job < 0) continue;
      const double remaining = lanes[l].target - lanes[l].s;
      lands[l] = lanes[l].h * (1 + 1e-9) >= remaining;
      step[l] = lands[l] ? remaining : lanes[l].h;
    }
    Real error_ratio = stiff ? stiff_step(step) : explicit_step(step);
    Real whole = error_ratio;
    for (int64_t m = 0; m < size; ++m) whole += fresh[m] + raw[m];
    const Mask good = (error_ratio <= 1) & (whole - whole == 0);
    for (int64_t m = 0; m < size; ++m) {
      y[m] = good ? fresh[m] : y[m];
      slope[m] = good ? raw[m] : slope[m];
    }
    const double power = stiff ? -1.0 / 5 : -1.0 / 8;
    for (int l = 0; l < kLanes; ++l) {
      Lane& lane = lanes[l];
      if (lane.job < 0) continue;
      const bool finite = std::isfinite(whole[l]), ok = good[l] != 0;
      const double size_of_error = finite ? error_ratio[l] : 1e10;
      const double growth = std::clamp(0.9 * std::pow(std::max(size_of_error, 1e-16), power), 0.2, 10.0);
      const double proposal = step[l] * growth;
      if (ok) lane.s = lands[l] ? lane.target : lane.s + step[l];
      const bool stalled = !ok && proposal < 8 * std::numeric_limits<double>::epsilon() * std::max(lane.s, lane.target);
      lane.h = ok && step[l] < lane.h ? std::max(lane.h, proposal) : proposal;
      ++lane.attempts;
      ++lane.in_turn;
      if (stalled) lane.attempts = std::max(lane.attempts, rules.most_steps);
      if (stalled || lane.in_turn >= rules.turn || lane.s >= lane.target || ripe(l)) end_turn(l);
    }
  }

  bool ripe(int l) const {
    if (y[n][l] - clouds.log_start[l] > rules.growth) return true;
    double square = 0;
    for (int64_t m = 0; m < n; ++m) square += slope[m][l] * slope[m][l];
    return std::sqrt(square) + std::fabs(slope[n][l]) < rules.still;
  }

  // Grown, shrunk along every axis, or still; Y -> Y O, which moves nothing, is left out of the speed. A cloud that is
  // neither shrinking nor still by the speed of the sum of its variances need not be looked at along its axes.
  bool decided(int l) const {
    const double change = y[n][l] - clouds.log_start[l], rate = slope[n][l];
    if (change > rules.growth) return true;
    if (std::fabs(rate) >= rules.still && (rate >= 0 || change >= rules.shrunk)) return false;
    std::vector<double> shape(n), moving(n);
    for (int64_t m = 0; m < n; ++m) shape[m] = y[m][l], moving[m] = slope[m][l];
    const Axes axes(shape, moving, places.d, places.r, rules.seen);
    const double limit = axes.speed < rules.settled ? rules.shrunk : 3 * rules.shrunk;
    return (axes.fastest + rate < 0 && change < limit) || axes.speed + std::fabs(rate) < rules.still;
  }

  void end_turn(int l) {
    Lane& lane = lanes[l];
    lane.in_turn = 0;
    if (lane.s <= rules.halt) places.early[lane.job] = y[n][l];
    if (lane.s < end && lane.attempts < rules.most_steps && !decided(l)) return aim(lane);
    for (int64_t m = 0; m < n; ++m) places.shapes[lane.job * n + m] = y[m][l];
    places.log_sizes[lane.job] = y[n][l];
    places.times[lane.job] = y[n + 1][l];
    places.clocks[lane.job] = lane.s;
    places.steps[lane.job] = lane.h;
    places.attempts[lane.job] = lane.attempts;
    lane.job = -1;
  }
};

void travel(ffi::ThreadPool& pool, const Rules& rules, Places& places, bool stiff, double reached, double end) {
  std::vector<int64_t> jobs;
  for (int64_t i = 0; i < places.count; ++i)
    if (places.clocks[i] >= reached) jobs.push_back(i);
  std::atomic<int64_t> next{0};
  const int64_t groups = (jobs.size() + kLanes - 1) / kLanes;
  share(pool, std::min<int64_t>(pool.num_threads(), groups), [&](int64_t) {
    Group(rules, places, stiff, end).follow(jobs, next);
  });
}

using Numbers = ffi::Buffer<ffi::F64>;
using Results = ffi::ResultBuffer<ffi::F64>;
using List = ffi::Span<const double>;

ffi::Error fates(ffi::ThreadPool pool, List a, List b, List fifth, List third, List stiff_a, List stiff_c, double gamma,
                 double rtol, double growth, double still, double shrunk, double settled, double seen, double halt,
                 double middle, double end, int64_t turn, int64_t most_steps, Numbers values, Numbers scores,
                 Numbers shapes, Numbers log_starts, Results out_shapes, Results log_sizes, Results times,
                 Results clocks, Results early) {
  const auto dims = shapes.dimensions();
  const int64_t count = dims[0], d = dims[1], r = dims[2], heads = values.dimensions()[1];
  const int64_t stiff_stages = static_cast<int64_t>(std::lround(std::sqrt(double(stiff_a.size()))));
  const Rules rules{{static_cast<int64_t>(b.size()), a.begin(), b.begin(), fifth.begin(), third.begin()},
                    {stiff_stages, stiff_a.begin(), stiff_c.begin(), gamma},
                    rtol, growth, still, shrunk, settled, seen, halt, turn, most_steps};
  std::copy_n(shapes.typed_data(), count * d * r, out_shapes->typed_data());
  std::copy_n(log_starts.typed_data(), count, log_sizes->typed_data());
  std::copy_n(log_starts.typed_data(), count, early->typed_data());
  std::fill_n(times->typed_data(), count, 0.0);
  std::fill_n(clocks->typed_data(), count, 0.0);
  Places places{count, heads, d, r, values.typed_data(), scores.typed_data(), log_starts.typed_data(),
                out_shapes->typed_data(), log_sizes->typed_data(), times->typed_data(), clocks->typed_data(),
                early->typed_data(), std::vector<double>(count, 1e-3), std::vector<int64_t>(count, 0)};
  if (middle > 0) travel(pool, rules, places, false, 0, middle);
  if (middle < end) travel(pool, rules, places, true, middle, end);
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(fates_float64, fates,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Attr<List>("a")
                                  .Attr<List>("b")
                                  .Attr<List>("fifth")
                                  .Attr<List>("third")
                                  .Attr<List>("stiff_a")
                                  .Attr<List>("stiff_c")
                                  .Attr<double>("gamma")
                                  .Attr<double>("rtol")
                                  .Attr<double>("growth")
                                  .Attr<double>("still")
                                  .Attr<double>("shrunk")
                                  .Attr<double>("settled")
                                  .Attr<double>("seen")
                                  .Attr<double>("halt")
                                  .Attr<double>("middle")
                                  .Attr<double>("end")
                                  .Attr<int64_t>("turn")
                                  .Attr<int64_t>("most_steps")
                                  .Arg<Numbers>()
                                  .Arg<Numbers>()
                                  .Arg<Numbers>()
                                  .Arg<Numbers>()
                                  .Ret<Numbers>()
                                  .Ret<Numbers>()
                                  .Ret<Numbers>()
                                  .Ret<Numbers>()
                                  .Ret<Numbers>());
