// Text on its way to standard output and standard error, for a process that must never wait for its reader.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include <dtrain/base/mutex.hpp>

namespace dtrain::cli {

struct OutputQueueLimits {
  std::size_t bytes = std::size_t{64} << 20;    // that may wait, over both streams
  std::chrono::milliseconds patience{500};      // for a reader that takes nothing while the queue is full
  std::chrono::milliseconds flush_bound{2000};  // for a reader that takes nothing, in flush()
};

// A reader may stand still: a terminal after Ctrl-S, a pager, a stopped process behind a pipe. put() hands the text to
// a thread, which writes it in order as the readers take it; both streams share one order. Where the queue is full,
// put() waits, as write(2) would, so that a slow reader gets everything. A reader that takes nothing for
// `limits.patience` meanwhile loses the text of later calls instead, until it reads again; then standard error says how
// many lines it lost. Text that cannot be written (a full disk, a reader that is gone) is dropped.
//
// The thread asks poll(2) before each write and writes at most PIPE_BUF bytes, which a pipe then takes at once, so that
// it can be ended while a reader stands still. A terminal may still hold it up in write(2): SIGURG, which this process
// uses for nothing else, then interrupts it. It blocks the other signals of the process, which interrupt other threads,
// except SIGPIPE, which the kernel sends to the thread that writes.
class OutputQueue {
 public:
  explicit OutputQueue(OutputQueueLimits limits = {});
  ~OutputQueue();  // as finish()
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Any thread. Each descriptor may be a terminal, a pipe, a socket or a file.
  void put(int fd, std::string text) DTRAIN_EXCLUDES(mutex_);
  // Waits until all is written, or no reader took anything for `limits.flush_bound`.
  void flush() DTRAIN_EXCLUDES(mutex_);
  // Waits until all is written, or one more stop signal comes: later calls do not wait then.
  void finish() DTRAIN_EXCLUDES(mutex_);
  int error_of(int fd) DTRAIN_EXCLUDES(mutex_);  // errno of its first write that failed; 0: none

 private:
  struct Piece {
    int fd = 0;
    std::string text;
    std::size_t written = 0;
  };
  void write_pieces(std::stop_token stop);
  void took(std::size_t bytes) DTRAIN_REQUIRES(mutex_);
  void drop(std::string_view text) DTRAIN_REQUIRES(mutex_);
  void tell_of_lost_lines() DTRAIN_REQUIRES(mutex_);
  std::chrono::steady_clock::duration idle_time() const DTRAIN_REQUIRES(mutex_);

  const OutputQueueLimits limits_;
  Mutex mutex_;
  StoppableCondVar filled_;
  CondVar taken_;
  std::deque<Piece> pieces_ DTRAIN_GUARDED_BY(mutex_);  // the thread writes the first one without the mutex
  std::size_t waiting_ DTRAIN_GUARDED_BY(mutex_) = 0;   // bytes of pieces_ that are not written
  std::size_t lost_lines_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point last_taken_ DTRAIN_GUARDED_BY(mutex_);  // or when the queue was empty last
  bool given_up_ DTRAIN_GUARDED_BY(mutex_) = false, ended_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::map<int, int> errors_ DTRAIN_GUARDED_BY(mutex_);  // by descriptor
  std::jthread thread_;                                  // declared last: it ends before what it uses
};

}  // namespace dtrain::cli
