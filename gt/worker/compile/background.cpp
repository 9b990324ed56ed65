// A native thread that runs compiled calls while the user's program continues.
//
// A Python thread would need the interpreter lock to start each call, and handing the lock over takes longer than
// many a call. This thread does not use Python: it runs the queued calls in order, and reports the end of each.
// A call may use results of the call before it, and is queued before these exist, so that it starts as soon as
// the other has ended. background.py is the Python side.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>

namespace {

using Function = int (*)(void *, void *, std::size_t, void *, std::size_t, void *, void *);
using Share = int (*)(void *, void **);
using SetThreads = void (*)(int);

constexpr int SKIPPED = -1;

struct Call {
  Function compute;
  void *container;
  void **inputs, **outputs;
  std::size_t taken, given;
  Share share;                  // makes another handle of a tensor
  const std::size_t *pending;  // pairs: an input, and the result of the call before that it is
  std::size_t pending_count;
  void **results;  // those of the call before
  int code;
  double seconds;
};

struct Background {
  static constexpr unsigned long MAX_QUEUED = 2;

  std::mutex lock;
  std::condition_variable changed;
  Call calls[MAX_QUEUED];
  std::atomic<unsigned long> asked{0}, done{0};
  unsigned long fetched = 0;

  Call &call(unsigned long number) { return calls[number % MAX_QUEUED]; }

  // Give a call its pending results, before the call that made them is reported as done: after that, its results
  // belong to the caller.
  void resolve_pending(Call &next, int code) {
    next.code = code ? SKIPPED : 0;
    for (std::size_t n = 0; n < next.pending_count && !next.code; n++)
      next.code = next.share(next.results[next.pending[2 * n + 1]], &next.inputs[next.pending[2 * n]]);
  }

  void start(const Call &next) {
    std::lock_guard<std::mutex> held(lock);
    unsigned long number = asked.load();
    call(number) = next;
    call(number).code = 0;
    if (next.pending_count && done.load() == number) resolve_pending(call(number), call(number - 1).code);
    asked.store(number + 1, std::memory_order_release);
    changed.notify_all();
  }

  // Wait until a counter exceeds a number.
  void await(const std::atomic<unsigned long> &count, unsigned long number) {
    // Sleeping and waking up take longer than many a wait, so spin for a moment first.
    for (int n = 0; n < 2000; n++) {
      if (count.load(std::memory_order_acquire) > number) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [&] { return count.load() > number; });
  }

  void serve() {
    for (unsigned long number = 0;; number++) {
      await(asked, number);
      Call &now = call(number);
      auto start = std::chrono::steady_clock::now();
      if (!now.code)
        now.code = now.compute(now.container, now.inputs, now.taken, now.outputs, now.given, nullptr, nullptr);
      now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::lock_guard<std::mutex> held(lock);
      if (asked.load() > number + 1 && call(number + 1).pending_count) resolve_pending(call(number + 1), now.code);
      done.store(number + 1, std::memory_order_release);
      changed.notify_all();
    }
  }
};

}  // namespace

extern "C" {

// Start a thread, which lives as long as the process; null if that fails. The number of OpenMP threads is a
// setting of the thread that makes a call, so it is set there.
Background *gt_background_new(SetThreads set_threads, int threads) {
  auto background = new Background();
  try {
    std::thread([=] {
      if (set_threads) set_threads(threads);
      background->serve();
    }).detach();
  } catch (const std::system_error &) {
    delete background;
    return nullptr;
  }
  return background;
}

// Queue a call. At most two may be queued. Its inputs must exist until gt_background_wait has returned for it,
// and its results until that has returned for the next call.
void gt_background_start(Background *background, Function compute, void *container, void **inputs,
                         std::size_t taken, void **outputs, std::size_t given, Share share,
                         const std::size_t *pending, std::size_t pending_count, void **results) {
  background->start(
      {compute, container, inputs, outputs, taken, given, share, pending, pending_count, results, 0, 0.0});
}

// Wait for the oldest call: its return code, -1 if it was not started, and its duration.
int gt_background_wait(Background *background, double *seconds) {
  background->await(background->done, background->fetched);
  const Call &ended = background->call(background->fetched++);
  *seconds = ended.seconds;
  return ended.code;
}
}
