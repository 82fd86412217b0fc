// Prompts through a causal decoder on the circle: where tokens end, and how the last one depends on every start.
//
// Steps are those of an explicit Runge-Kutta method (one stage: residual layers); the derivative is the exact adjoint of
// the steps taken, so that its entries sum to one as those of the flow do. Eight prompts side by side, groups on all
// cores. O(N K) for each stage of each step, forwards and backwards.

#include "causal.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

struct Method {
  int64_t stages, steps;
  const double *a, *b;
  double step;
};

template <typename V>
void follow(const Attention& attention, const Method& method, V* at, V* gradient) {
  const int64_t n = attention.n, stages = method.stages;
  std::vector<std::vector<V>> k(stages, std::vector<V>(n));
  std::vector<V> y(n), sums;
  std::vector<Trace<V>> traces;
  if (gradient) traces.assign(stages * method.steps, Trace<V>(n, attention.softmax));
  for (int64_t step = 0; step < method.steps; ++step) {
    for (int64_t i = 0; i < stages; ++i) {
      std::copy(at, at + n, y.begin());
      for (int64_t j = 0; j < i; ++j) {
        const double weight = method.step * method.a[i * stages + j];
        if (weight != 0)
          for (int64_t m = 0; m < n; ++m) y[m] += weight * k[j][m];
      }
      speeds<V>(attention, y.data(), k[i].data(), gradient ? &traces[step * stages + i] : nullptr, sums);
    }
    for (int64_t i = 0; i < stages; ++i)
      for (int64_t m = 0; m < n; ++m) at[m] += method.step * method.b[i] * k[i][m];
  }
  if (!gradient) return;
  std::fill(gradient, gradient + n, V{});
  gradient[n - 1] = V{} + 1.0;
  for (int64_t step = method.steps - 1; step >= 0; --step) {
    for (int64_t i = stages - 1; i >= 0; --i) {
      for (int64_t m = 0; m < n; ++m) y[m] = method.step * method.b[i] * gradient[m];
      for (int64_t j = i + 1; j < stages; ++j) {
        const double weight = method.step * method.a[j * stages + i];
        if (weight != 0)
          for (int64_t m = 0; m < n; ++m) y[m] += weight * k[j][m];
      }
      std::fill(k[i].begin(), k[i].end(), V{});
      pulled_back<V>(attention, traces[step * stages + i], y.data(), k[i].data(), sums);
    }
    for (int64_t i = 0; i < stages; ++i)
      for (int64_t m = 0; m < n; ++m) gradient[m] += k[i][m];
  }
}

void one_prompt(const Attention& attention, const Method& method, const double* start, double* end, double* gradient) {
  std::copy(start, start + attention.n, end);
  follow<double>(attention, method, end, gradient);
}

void side_by_side(const Attention& attention, const Method& method, const double* start, int64_t count, double* end,
                  double* gradient) {
  const int64_t n = attention.n;
  std::vector<Side> at(n), back(gradient ? n : 0);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t r = 0; r < kPrompts; ++r) at[j][r] = start[std::min(r, count - 1) * n + j];
  follow<Side>(attention, method, at.data(), gradient ? back.data() : nullptr);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t j = 0; j < n; ++j) {
      end[r * n + j] = at[j][r];
      if (gradient) gradient[r * n + j] = back[j][r];
    }
}

ffi::Error decoder(ffi::ThreadPool pool, bool softmax, bool adjoint, double beta, double decay, double step,
                   int64_t steps, ffi::Span<const double> a, ffi::Span<const double> b, ffi::Buffer<ffi::F64> start,
                   ffi::Buffer<ffi::F64> bessel, ffi::Buffer<ffi::F64> inverse, ffi::ResultBuffer<ffi::F64> end,
                   ffi::ResultBuffer<ffi::F64> gradient) {
  const int64_t runs = start.dimensions()[0], n = start.dimensions()[1];
  const Attention attention{n, bessel.dimensions()[0] - 1, bessel.typed_data(), inverse.typed_data(), decay, beta, softmax};
  const Method method{static_cast<int64_t>(b.size()), steps, a.begin(), b.begin(), step};
  const int64_t width = runs > 2 ? kPrompts : 1, groups = (runs + width - 1) / width;
  share(pool, groups, [&](int64_t g) {
    const int64_t first = g * width, count = std::min(width, runs - first);
    const double* from = start.typed_data() + first * n;
    double *to = end->typed_data() + first * n, *back = adjoint ? gradient->typed_data() + first * n : nullptr;
    if (width == 1)
      one_prompt(attention, method, from, to, back);
    else
      side_by_side(attention, method, from, count, to, back);
  });
  return ffi::Error::Success();
}

auto binding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Attr<bool>("softmax")
      .Attr<bool>("adjoint")
      .Attr<double>("beta")
      .Attr<double>("decay")
      .Attr<double>("step")
      .Attr<int64_t>("steps")
      .Attr<ffi::Span<const double>>("a")
      .Attr<ffi::Span<const double>>("b")
      .Arg<ffi::Buffer<ffi::F64>>()
      .Arg<ffi::Buffer<ffi::F64>>()
      .Arg<ffi::Buffer<ffi::F64>>()
      .Ret<ffi::Buffer<ffi::F64>>()
      .Ret<ffi::Buffer<ffi::F64>>();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(decoder_float64, decoder, binding());
