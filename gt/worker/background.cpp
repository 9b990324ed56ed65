// A thread that computes while the program that asked for it goes on.
//
// Python runs one thread at a time, and handing its interpreter from one thread to another takes longer than
// many a computation. This thread knows nothing of Python: it calls what a compiler made, and says when it is
// done. background.py is the other side.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>

namespace {

using Function = int (*)(void *, void *, std::size_t, void *, std::size_t, void *, void *);

enum State { RESTING, ASKED, DONE };

struct Background {
  std::mutex lock;
  std::condition_variable changed;
  std::atomic<State> state{RESTING};
  Function compute;
  void *container, *inputs, *outputs;
  std::size_t taken, given;
  int code;
  double seconds;

  void become(State next) {
    std::lock_guard<std::mutex> held(lock);
    state.store(next, std::memory_order_release);
    changed.notify_all();
  }

  void await(State wanted) {
    // Going to sleep and waking up take longer than many a wait: look out for a moment first.
    for (int n = 0; n < 2000; n++) {
      if (state.load(std::memory_order_acquire) == wanted) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [&] { return state.load() == wanted; });
  }

  void serve() {
    for (;;) {
      await(ASKED);
      auto start = std::chrono::steady_clock::now();
      code = compute(container, inputs, taken, outputs, given, nullptr, nullptr);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      become(DONE);
    }
  }
};

}  // namespace

extern "C" {

// A new thread, which lives as long as the process; null if there is none to be had.
Background *gt_background_new() {
  auto background = new Background();
  try {
    std::thread([background] { background->serve(); }).detach();
  } catch (const std::system_error &) {
    delete background;
    return nullptr;
  }
  return background;
}

// Begin a computation. What it needs must be there until gt_background_wait has returned.
void gt_background_start(Background *background, Function compute, void *container, void *inputs,
                         std::size_t taken, void *outputs, std::size_t given) {
  background->compute = compute;
  background->container = container;
  background->inputs = inputs;
  background->taken = taken;
  background->outputs = outputs;
  background->given = given;
  background->become(ASKED);
}

// Wait for its end: what it returned, and how long it took.
int gt_background_wait(Background *background, double *seconds) {
  background->await(DONE);
  background->state.store(RESTING);
  *seconds = background->seconds;
  return background->code;
}
}
