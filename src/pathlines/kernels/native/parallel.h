// Pieces of work shared by the threads of XLA's own pool.

#ifndef PATHLINES_PARALLEL_H_
#define PATHLINES_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace {

// work(i) for i = 0 .. count-1, each once, on the caller's thread and on those of the pool that are free. It waits for
// pieces, not for threads: a helper that comes late finds nothing left to do, so a busy pool cannot block it.
template <typename Work>
void share(xla::ffi::ThreadPool& pool, int64_t count, const Work& work) {
  struct Progress {
    std::atomic<int64_t> next{0}, done{0};
  };
  auto progress = std::make_shared<Progress>();
  auto help = [progress, count, &work] {
    for (int64_t i = progress->next++; i < count; i = progress->next++) {
      work(i);
      progress->done.fetch_add(1, std::memory_order_release);
    }
  };
  for (int64_t t = 1; t < std::min(pool.num_threads(), count); ++t) pool.Schedule(std::function<void()>(help));
  help();
  while (progress->done.load(std::memory_order_acquire) < count) std::this_thread::yield();
}

}  // namespace

#endif  // PATHLINES_PARALLEL_H_
