#include <dtrain/base/stop.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <iterator>
#include <thread>

namespace dtrain {
namespace {

constexpr std::chrono::milliseconds kPauseSlice{50};  // within which a pause sees a signal

// Programs such as timeout(1) signal their child and then its process group: it is one request.
constexpr std::int64_t kOneRequest = 300'000'000;  // nanoseconds

constexpr int kWarnings[] = {SIGUSR1, SIGUSR2, SIGXCPU};

// What handlers use.
volatile std::sig_atomic_t first_signal = 0, last_signal = 0, count = 0, limit = 1;
volatile std::sig_atomic_t ends_next[NSIG] = {};  // the next one of this kind ends the process
std::atomic<std::int64_t> last_time = 0;
std::atomic<const char*> first_answer = nullptr;
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

std::int64_t nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool is_same_request(int signal) { return signal == last_signal && nanoseconds() - last_time < kOneRequest; }

// Not where the reader stands still: the handler must not wait for it.
void answer() {
  const int error = errno;
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  const char* const words = first_answer;
  if (words != nullptr && poll(&output, 1, 0) > 0) (void)!::write(STDERR_FILENO, words, std::strlen(words));
  errno = error;
}

// A terminal that closes may send SIGHUP twice, by the kernel and by the shell, and each line without a reader sends
// SIGPIPE: it is one request.
void remember(int signal) {
  const bool only_begins = signal == SIGHUP || signal == SIGPIPE || is_warning(signal);
  if (only_begins ? first_signal != 0 : is_same_request(signal)) return;
  if (ends_next[signal] != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // comes once this handler has returned
    return;
  }
  const bool is_first = first_signal == 0;
  if (is_first) first_signal = signal;
  last_signal = signal;
  last_time = nanoseconds();
  count = count + 1;
  if (count >= limit && !only_begins) ends_next[signal] = 1;
  if (is_first && !only_begins) answer();
}

// A socket or a pipe to another process may be the one that is broken.
void remember_if_unread(int signal) {
  const int error = errno;
  pollfd outputs[] = {{STDOUT_FILENO, 0, 0}, {STDERR_FILENO, 0, 0}};
  poll(outputs, 2, 0);
  if (((outputs[0].revents | outputs[1].revents) & (POLLERR | POLLHUP)) != 0) remember(signal);
  errno = error;
}

}  // namespace

bool is_warning(int signal) { return std::ranges::find(kWarnings, signal) != std::end(kWarnings); }

sigset_t all_stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  for (const int signal : kWarnings) ::sigaddset(&signals, signal);
  return signals;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void watch_stop_signals(int heard) {
  limit = heard;
  for (int signal : {SIGINT, SIGTERM}) watch_stop_signal(signal);
  if (!is_ignored(SIGHUP)) watch_stop_signal(SIGHUP);
  for (const int signal : kWarnings) {
    if (!is_ignored(signal)) watch_stop_signal(signal);
  }
}

void end_at_stop_signals() {
  const sigset_t signals = all_stop_signals();
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&signals, signal) == 1 && !is_ignored(signal)) std::signal(signal, SIG_DFL);
  }
}

void answer_first_signal(const char* words) { first_answer = words; }

void watch_stop_signal(int signal) {
  ends_next[signal] = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  sigaction(signal, &action, nullptr);
}

void watch_for_lost_reader() {
  if (is_ignored(SIGPIPE)) return;
  struct sigaction action {};
  action.sa_handler = remember_if_unread;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

int stop_signal() { return first_signal; }

int stop_signals() { return count; }

bool pause_unless_stopped(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (stop_signal() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPauseSlice);
  return stop_signal() == 0;
}

void reset_stop_signal() {
  first_signal = 0;
  last_signal = 0;
  count = 0;
}

}  // namespace dtrain
