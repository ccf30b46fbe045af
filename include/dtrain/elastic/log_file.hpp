// A log in the job folder: whole lines, each after its time, "2026-01-31T23:59:59.123456Z line". A note of dtrain has
// kBeforeNote in place of the blank, so that no output of a program looks like one. One process writes the log.
// At 64 MiB it becomes NAME.1, the previous NAME.1 becomes NAME.2, up to NAME.4; after a rename by another process a
// new file is begun. While the disk is full or the folder read-only, lines are counted, and a later line says how many
// are missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::elastic {

class LogFile {
 public:
  static constexpr std::uint64_t kRotateAt = 64 << 20;
  static constexpr int kKept = 4;
  static constexpr char kBeforeLine = ' ', kBeforeNote = '\t';

  explicit LogFile(Path path, std::uint64_t rotate_at = kRotateAt);
  // Whole lines, each ending in a newline. Never throws.
  void append(std::string_view lines) { append(lines, kBeforeLine); }
  // One line, without its newline. Never throws.
  void append_note(std::string_view line) { append(std::string(line) + '\n', kBeforeNote); }

 private:
  void append(std::string_view lines, char before);
  void open();
  void rotate();
  void notice_rename();
  bool write(std::string_view text);

  const Path path_;
  const std::uint64_t rotate_at_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::uint64_t lost_ = 0;  // lines since the last one that was written
  bool torn_ = false;       // the last write stopped within a line
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace dtrain::elastic
