// Whole trajectories of self-attention on the sphere: plain functions that ctypes calls, so that nothing is compiled for
// another n. States, clocks and slopes come in and go out, so that a run may be cut in calls anywhere.

#include "fields.h"

namespace {

// As ctypes hands it over: what one call is to do with each run.
struct Travel {
  int64_t runs, count, budget, fresh, watch, threads;
  double ripe;  // pairs within that deficit pause a run that is watched
};

template <typename T>
struct Trails {
  T *state, *slope;  // runs x n x d
  Clock<T>* clocks;
  const T* times;   // count
  T *rows, *energies, *works;  // runs x count (x n x d)
  int64_t* done;    // times that each run has behind it
  const double* betas;
};

// A run from where its clock stands through its recorded times.
template <typename T>
void follow(const System& system, const Scheme& scheme, const Travel& travel, const Trails<T>& all, int64_t run, Crew& crew, int64_t threads) {
  int64_t& at = all.done[run];
  Clock<T>& c = all.clocks[run];
  if (at == travel.count || c.status != kOk) return;
  System s = system;
  if (all.betas) s.beta = all.betas[run];
  const std::unique_ptr<Field<T>> field = field_for<T>(s, crew, threads);
  Stepper<T> stepper(*field, scheme);
  const int64_t numbers = s.n * s.d;
  field->load_rows(all.state + run * numbers, stepper.state());
  field->load_rows(all.slope + run * numbers, stepper.slope());
  const int64_t begun = c.accepted + c.rejected;
  stepper.begin(c, travel.fresh);
  for (; at < travel.count; ++at) {
    while (c.t < all.times[at] && c.status == kOk && c.accepted + c.rejected - begun < travel.budget &&
           !(travel.watch && field->within(stepper.state(), static_cast<T>(travel.ripe))))
      stepper.step(c, all.times[at]);
    if (c.t < all.times[at]) break;
    const int64_t row = run * travel.count + at;
    field->store_rows(stepper.state(), all.rows + row * numbers);
    all.energies[row] = stepper.energy();
    all.works[row] = c.work;
  }
  field->store_rows(stepper.state(), all.state + run * numbers);
  field->store_rows(stepper.slope(), all.slope + run * numbers);
}

template <typename T>
void travel_all(const System& system, const Scheme& scheme, const Travel& travel, const Trails<T>& all) {
  if (travel.runs == 1) {
    Crew crew(travel.threads);
    return follow<T>(system, scheme, travel, all, 0, crew, travel.threads);
  }
  Crew crew(travel.threads);
  std::atomic<int64_t> next{0};
  crew.share(travel.threads, [&](int64_t) {
    Crew alone(1);
    for (int64_t run = next++; run < travel.runs; run = next++) follow<T>(system, scheme, travel, all, run, alone, 1);
  });
}

}  // namespace

extern "C" {
void pathlines_travel_float32(const System* s, const Scheme* m, const Travel* t, const Trails<float>* all) {
  travel_all<float>(*s, *m, *t, *all);
}
void pathlines_travel_float64(const System* s, const Scheme* m, const Travel* t, const Trails<double>* all) {
  travel_all<double>(*s, *m, *t, *all);
}
}
