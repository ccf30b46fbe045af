// One log of a job folder, read line by line while it grows, through rotation (NAME, NAME.1, ... and renamed files),
// and always whole lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::job {

// A line of a log without the time at its beginning.
std::string_view without_time(std::string_view line);

class LogSource {
 public:
  // Older files, ... NAME.2, NAME.1, come first.
  explicit LogSource(const Path& path);

  // Advances to the next whole line; time(), line() and rank() describe it until the next call. Returns false if there
  // is none yet.
  bool next();
  // No more will be written: text behind the last newline counts as a line too.
  void end() { ended_ = true; }

  // At the beginning of the line, or of an earlier line; empty: none yet.
  std::string_view time() const { return time_; }
  std::string_view line() const { return line_; }  // without time and newline
  int rank() const { return rank_; }               // rank of the worker at that line; -1: unknown

  const std::string& name() const { return name_; }  // "w1.0", "w1.0.ps2", "prepare_w3", "coordinator"
  const std::string& host() const { return host_; }  // as in file names; empty: none
  int slot() const { return slot_; }                 // -1: neither a worker nor a server beside one

 private:
  bool take_line();
  bool read_more();
  bool turn_to_next_file();
  bool begin_again_if_cut();
  bool is_replaced();
  void open_newer();
  void understand(std::string_view line);
  bool names_rank(bool is_note) const;

  const Path path_;
  std::string name_, host_;
  int slot_ = -1;
  bool is_of_worker_ = false;
  FileDescriptor file_;                 // the file being read
  std::deque<FileDescriptor> waiting_;  // files to be read next
  std::optional<std::chrono::steady_clock::time_point> replaced_since_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string time_;
  std::string_view line_;
  int rank_ = -1;
  bool has_notes_ = false;  // so far
  bool ended_ = false;
};

}  // namespace dtrain::job
