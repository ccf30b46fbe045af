// Mutexes that clang checks. A class declares a Mutex, marks each member that it protects with
// DTRAIN_GUARDED_BY(mutex_), and marks each function that must be called with the mutex held with
// DTRAIN_REQUIRES(mutex_). A MutexLock holds the mutex for a scope. `clang -Wthread-safety`
// (tests/lint/thread_safety.sh) then refuses every access without the mutex; other compilers see plain std::mutex. The
// analysis looks at one function at a time: it does not follow a lambda into the function that calls it, so a wait is a
// loop around wait(mutex_), or a predicate that is itself marked:
// `[this]() DTRAIN_REQUIRES(mutex_) { ... }`. Constructors and destructors are not checked. A member that one phase
// uses with the mutex and another without stays unmarked, and a comment gives the rule. The macros follow
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#ifdef __clang__
#define DTRAIN_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define DTRAIN_THREAD_SAFETY(attribute)
#endif
// A member that is read and written with the mutex held.
#define DTRAIN_GUARDED_BY(mutex) DTRAIN_THREAD_SAFETY(guarded_by(mutex))
// A function whose caller holds the mutex.
#define DTRAIN_REQUIRES(...) DTRAIN_THREAD_SAFETY(requires_capability(__VA_ARGS__))
// A function that locks the mutex itself, so that its caller must not hold it.
#define DTRAIN_EXCLUDES(...) DTRAIN_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// For the classes below.
#define DTRAIN_ACQUIRE(...) DTRAIN_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define DTRAIN_RELEASE(...) DTRAIN_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define DTRAIN_TRY_ACQUIRE(...) DTRAIN_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))

namespace dtrain {

class DTRAIN_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() DTRAIN_ACQUIRE() { mutex_.lock(); }
  void unlock() DTRAIN_RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() DTRAIN_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class HeldLock;
  std::mutex mutex_;
};

// Holds the mutex until it is destroyed, except between unlock() and lock().
class [[nodiscard]] DTRAIN_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DTRAIN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Takes over a mutex that the caller locked, such as by try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t) DTRAIN_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() DTRAIN_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() DTRAIN_RELEASE() {
    mutex_.unlock();
    held_ = false;
  }
  void lock() DTRAIN_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// The lock that the standard's condition variables ask for, on a mutex that the caller holds before and after.
class HeldLock {
 public:
  explicit HeldLock(Mutex& mutex) : lock_(mutex.mutex_, std::adopt_lock) {}
  ~HeldLock() { lock_.release(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  std::unique_lock<std::mutex>& get() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Waits release the mutex and hold it again when they return; they may return without a notification.
class CondVar {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(Mutex& mutex) DTRAIN_REQUIRES(mutex) { condition_.wait(HeldLock(mutex).get()); }
  void wait_for(Mutex& mutex, std::chrono::nanoseconds time) DTRAIN_REQUIRES(mutex) {
    condition_.wait_for(HeldLock(mutex).get(), time);
  }
  // Returns done(): false if the time is over.
  template <typename Done>
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds time, Done done) DTRAIN_REQUIRES(mutex) {
    return condition_.wait_for(HeldLock(mutex).get(), time, std::move(done));
  }

 private:
  std::condition_variable condition_;
};

// A condition variable whose waits also end when a stop is requested.
class StoppableCondVar {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  // Both return done().
  template <typename Done>
  bool wait(Mutex& mutex, std::stop_token stop, Done done) DTRAIN_REQUIRES(mutex) {
    return condition_.wait(HeldLock(mutex).get(), std::move(stop), std::move(done));
  }
  template <typename Done>
  bool wait_for(Mutex& mutex, std::stop_token stop, std::chrono::nanoseconds time, Done done) DTRAIN_REQUIRES(mutex) {
    return condition_.wait_for(HeldLock(mutex).get(), std::move(stop), time, std::move(done));
  }

 private:
  std::condition_variable_any condition_;
};

// Sleeps for this time, or until a stop is requested.
inline void sleep_unless_stopped(std::stop_token stop, std::chrono::nanoseconds time) {
  Mutex mutex;
  StoppableCondVar stopped;
  const MutexLock lock(mutex);
  stopped.wait_for(mutex, std::move(stop), time, [] { return false; });
}

}  // namespace dtrain
