// The log of a parameter server or scheduler beside a worker: what the process writes, each line after its time.
#pragma once

#include <thread>

#include <dtrain/base/files.hpp>
#include <dtrain/base/output_lines.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/elastic/log_file.hpp>

namespace dtrain::external {

// A thread of its own reads the output, because the rank may wait for others while a server writes. Only that thread
// uses the file. It ends with the last process that has the output, or with this object, which logs what is in the pipe
// by then.
class ServerLog {
 public:
  // Throws Error when no pipe or no thread can be made.
  explicit ServerLog(const Path& file);
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;

  // For the standard output and error of the process; valid until started().
  int output() const { return pipe_.write_end.get(); }
  // The process has the output: its end is seen from now on.
  void started() { pipe_.write_end = FileDescriptor(); }

 private:
  void read(const std::stop_token& over);

  elastic::LogFile file_;
  OutputLines lines_;
  Pipe pipe_;
  std::jthread thread_;  // last: it uses the above
};

}  // namespace dtrain::external
