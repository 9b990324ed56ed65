// A thread that computes while the program that asked for it goes on.
//
// Python runs one thread at a time, and handing its interpreter from one thread to another takes longer than
// many a computation. This thread knows nothing of Python: it calls what a compiler made, one call after the
// other, and says when each is done. A call may need results of the one before it, and is asked for before
// they are there: so nothing lies between the two. background.py is the other side.

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
  static constexpr unsigned long MOST = 2;

  std::mutex lock;
  std::condition_variable changed;
  Call calls[MOST];
  std::atomic<unsigned long> asked{0}, done{0};
  unsigned long fetched = 0;

  Call &call(unsigned long number) { return calls[number % MOST]; }

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

  // Wait until more calls than so many are counted.
  void await(const std::atomic<unsigned long> &count, unsigned long number) {
    // Going to sleep and waking up take longer than many a wait: look out for a moment first.
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

// A new thread, which lives as long as the process; null if there is none to be had. How many threads may help
// with a computation is a matter of the thread that begins it, and has to be said in it.
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

// Begin a call, as soon as the one before it is done. At most two may be under way. What it needs must be
// there until gt_background_wait has returned for it, and its results until the same of the next.
void gt_background_start(Background *background, Function compute, void *container, void **inputs,
                         std::size_t taken, void **outputs, std::size_t given, Share share,
                         const std::size_t *pending, std::size_t pending_count, void **results) {
  background->start(
      {compute, container, inputs, outputs, taken, given, share, pending, pending_count, results, 0, 0.0});
}

// Wait for the end of the oldest call: what it returned, -1 if it was not called, and how long it took.
int gt_background_wait(Background *background, double *seconds) {
  background->await(background->done, background->fetched);
  const Call &ended = background->call(background->fetched++);
  *seconds = ended.seconds;
  return ended.code;
}
}
