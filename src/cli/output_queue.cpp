#include "output_queue.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <dtrain/base/stop.hpp>

namespace dtrain::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};  // within which waits see a stop

void leave_signals_to_other_threads() {
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(SIGURG, &interrupt, nullptr);
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGPIPE, SIGURG, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&signals, fault);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

// Whether the descriptor takes text now, or fails.
bool is_ready(int fd) {
  pollfd output{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, static_cast<int>(kLook.count())) > 0;
}

// The number of bytes that the descriptor took: 0 where its reader takes nothing now, below 0 where errno says why they
// cannot be written.
ssize_t write_some(int fd, std::string_view text) {
  if (!is_ready(fd)) return 0;
  const ssize_t done = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
  return done < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : done;
}

}  // namespace

OutputQueue::OutputQueue(OutputQueueLimits limits)
    : limits_(limits),
      last_taken_(steady_clock::now()),
      thread_([this](std::stop_token stop) { write_pieces(stop); }) {}

OutputQueue::~OutputQueue() {
  finish();
  thread_.request_stop();
  const MutexLock lock(mutex_);
  while (!ended_) {
    ::pthread_kill(thread_.native_handle(), SIGURG);
    taken_.wait_for(mutex_, kLook);
  }
}

void OutputQueue::put(int fd, std::string text) {
  const MutexLock lock(mutex_);
  if (text.empty()) return;
  while (!pieces_.empty() && waiting_ + text.size() > limits_.bytes) {
    if (idle_time() >= limits_.patience) return drop(text);
    taken_.wait_for(mutex_, kLook);
  }
  if (pieces_.empty()) last_taken_ = steady_clock::now();
  tell_of_lost_lines();
  waiting_ += text.size();
  pieces_.push_back({.fd = fd, .text = std::move(text)});
  filled_.notify_one();
}

void OutputQueue::flush() {
  const MutexLock lock(mutex_);
  while (!pieces_.empty() && idle_time() < limits_.flush_bound) taken_.wait_for(mutex_, kLook);
}

void OutputQueue::finish() {
  const MutexLock lock(mutex_);
  tell_of_lost_lines();
  const int signals = stop_signals();
  while (!pieces_.empty() && !given_up_) {
    taken_.wait_for(mutex_, kLook);
    given_up_ = stop_signals() != signals;
  }
}

int OutputQueue::error_of(int fd) {
  const MutexLock lock(mutex_);
  const auto found = errors_.find(fd);
  return found == errors_.end() ? 0 : found->second;
}

void OutputQueue::write_pieces(std::stop_token stop) {
  leave_signals_to_other_threads();
  MutexLock lock(mutex_);
  while (filled_.wait(mutex_, stop, [this]() DTRAIN_REQUIRES(mutex_) { return !pieces_.empty(); }) &&
         !stop.stop_requested()) {
    Piece& piece = pieces_.front();  // stays where it is while others are put behind it
    const std::string_view rest = std::string_view(piece.text).substr(piece.written);
    lock.unlock();
    const ssize_t done = write_some(piece.fd, rest);
    const int error = errno;
    lock.lock();
    if (done < 0) errors_.emplace(piece.fd, error);
    if (done != 0) took(done > 0 ? static_cast<std::size_t>(done) : rest.size());
  }
  ended_ = true;
  taken_.notify_all();
}

// The thread has written so many bytes of the first piece, or dropped them.
void OutputQueue::took(std::size_t bytes) {
  Piece& piece = pieces_.front();
  piece.written += bytes;
  waiting_ -= bytes;
  last_taken_ = steady_clock::now();
  if (piece.written == piece.text.size()) pieces_.pop_front();
  taken_.notify_all();
}

void OutputQueue::drop(std::string_view text) {
  lost_lines_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

void OutputQueue::tell_of_lost_lines() {
  if (lost_lines_ == 0) return;
  std::string text = fmt::format("dtrain: warning: {} lines are not shown, because nothing read the output\n",
                                 std::exchange(lost_lines_, 0));
  waiting_ += text.size();
  pieces_.push_back({.fd = STDERR_FILENO, .text = std::move(text)});
  filled_.notify_one();
}

std::chrono::steady_clock::duration OutputQueue::idle_time() const { return steady_clock::now() - last_taken_; }

}  // namespace dtrain::cli
