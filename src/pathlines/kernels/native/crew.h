// Threads that are woken once for a whole trajectory and share out one piece of work after the other.

#ifndef PATHLINES_CREW_H_
#define PATHLINES_CREW_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

inline void relax(int64_t turn) {
#if defined(__x86_64__)
  if (turn < 2000) {
    __builtin_ia32_pause();
    return;
  }
#endif
  std::this_thread::yield();
}

// A round of pieces is published as one number (round, count, next piece), and a piece belongs to whoever raises it: a
// helper that comes late finds another round or nothing left, and nobody waits for one that has not begun. Helpers are
// started with the first work.
class Crew {
 public:
  explicit Crew(int64_t threads) : wanted_(threads - 1) {}
  Crew(const Crew&) = delete;
  ~Crew() {
    over_.store(true, std::memory_order_release);
    for (std::thread& t : helpers_) t.join();
  }

  // work(i) for i = 0 .. count - 1 < 2^16, each once.
  template <typename Work>
  void share(int64_t count, const Work& work) {
    if (wanted_ <= 0 || count <= 1) {
      for (int64_t i = 0; i < count; ++i) work(i);
      return;
    }
    call_ = [](const void* context, int64_t i) { (*static_cast<const Work*>(context))(i); };
    context_ = &work;
    done_.store(0, std::memory_order_relaxed);
    state_.store(++round_ << 32 | static_cast<uint64_t>(count) << 16, std::memory_order_release);
    if (helpers_.empty())
      for (int64_t t = 0; t < wanted_; ++t) helpers_.emplace_back([this] { serve(); });
    while (claim()) {}
    for (int64_t turn = 0; done_.load(std::memory_order_acquire) < count; ++turn) relax(turn);
  }

 private:
  bool claim() {
    uint64_t seen = state_.load(std::memory_order_acquire);
    do {
      if ((seen & 0xffff) >= (seen >> 16 & 0xffff)) return false;
    } while (!state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    call_(context_, seen & 0xffff);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void serve() {
    for (int64_t turn = 0; !over_.load(std::memory_order_acquire); ++turn) {
      if (claim())
        turn = 0;
      else
        relax(turn);
    }
  }

  int64_t wanted_;
  uint64_t round_ = 0;
  void (*call_)(const void*, int64_t) = nullptr;
  const void* context_ = nullptr;
  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> over_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace

#endif  // PATHLINES_CREW_H_
