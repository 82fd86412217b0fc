// How many exponentials a core can do: of an array in the first cache, as a library would be called, and of numbers that
// never leave their registers.

#include "vectors.h"

namespace {

constexpr int kMany = 4;

template <typename T>
double in_cache(int64_t count) {
  constexpr int W = Lanes<T>::width, size = 2048;
  alignas(64) static thread_local T x[size];
  for (int i = 0; i < size; ++i) x[i] = static_cast<T>(-0.01 * i);
  Vec<T> sum[kMany] = {};
  for (int64_t done = 0; done < count; done += size) {
    x[done / size % size] -= static_cast<T>(1);
    for (int i = 0; i < size; i += kMany * W)
      for (int k = 0; k < kMany; ++k) sum[k] += exponential<T>(load<T>(x + i + k * W));
  }
  for (int k = 1; k < kMany; ++k) sum[0] += sum[k];
  return static_cast<double>(total<T>(sum[0]));
}

template <typename T>
double in_registers(int64_t count) {
  constexpr int W = Lanes<T>::width;
  Vec<T> x[kMany], sum = {};
  for (int k = 0; k < kMany; ++k)
    for (int i = 0; i < W; ++i) x[k][i] = static_cast<T>(-0.1 * (k * W + i));
  for (int64_t done = 0; done < count; done += kMany * W) {
    Vec<T> y[kMany];
    for (int k = 0; k < kMany; ++k) y[k] = x[k];
    powers_of_two<T, kMany>(y);
    for (int k = 0; k < kMany; ++k) {
      sum += y[k];
      x[k] -= static_cast<T>(1e-6);
    }
  }
  return static_cast<double>(total<T>(sum));
}

}  // namespace

extern "C" double cache_float32(int64_t count) { return in_cache<float>(count); }
extern "C" double cache_float64(int64_t count) { return in_cache<double>(count); }
extern "C" double registers_float32(int64_t count) { return in_registers<float>(count); }
extern "C" double registers_float64(int64_t count) { return in_registers<double>(count); }
