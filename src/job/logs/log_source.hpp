// One log of a job folder, read line by line while it grows: through rotation (NAME, NAME.1, ... and files that
// somebody renamed), and never half a line.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::job {

class LogSource {
 public:
  // The older files, ... NAME.2, NAME.1, come first.
  explicit LogSource(const Path& path);

  // The next whole line is there: time(), line() and rank() tell it until the next call. False: not yet.
  bool next();
  // Nothing will be written any more: what stands behind the last newline is a line too.
  void end() { ended_ = true; }

  std::string_view time() const { return time_; }  // as the line began, or of the line before it; empty: none yet
  std::string_view line() const { return line_; }  // without time and newline
  int rank() const { return rank_; }               // of the worker when it wrote the line; -1: not known

  const std::string& name() const { return name_; }  // "w1.0", "prepare_w3", "coordinator"
  const std::string& host() const { return host_; }  // as in file names; empty: of no host
  int slot() const { return slot_; }                 // -1: of no worker

 private:
  bool take_line();
  bool read_more();
  bool turn_to_next_file();
  bool begin_again_if_cut();
  bool is_replaced();
  void open_newer();
  void understand(std::string_view line);

  const Path path_;
  std::string name_, host_;
  int slot_ = -1;
  FileDescriptor file_;                 // that is read
  std::deque<FileDescriptor> waiting_;  // to be read after it
  std::optional<std::chrono::steady_clock::time_point> replaced_since_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string time_;
  std::string_view line_;
  int rank_ = -1;
  bool ended_ = false;
};

}  // namespace dtrain::job
