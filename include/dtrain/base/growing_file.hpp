// A file that one process appends to while the disk may fill up or the folder become read-only: what could not be
// written is kept in memory and written before what follows, so that nothing is torn and, in the end, nothing missing.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

class GrowingFile {
 public:
  static constexpr std::size_t kKept = 64 << 20;

  // A new file gets these permissions, less the umask. Throws Error when it cannot be opened.
  explicit GrowingFile(Path path, unsigned permissions = 0666);
  GrowingFile(const GrowingFile&) = delete;
  ~GrowingFile();
  // Keeps at least so many bytes of the disk for what will be appended, where the file system can: they can then be
  // written after others filled it, and are not lost with this process. Returned at the end of this object.
  void reserve(std::uint64_t bytes);
  // Throws Error when not all of it is written: the rest is kept, up to `kKept` bytes in all; what exceeds them is
  // lost. sync: it is on disk when this returns; after a failure to write, when catch_up() or the next append()
  // returns. After a failure to sync these try again, but what the system dropped from its memory by then may be lost.
  void append(std::string_view text, bool sync = false);
  // Tries to write what is kept, and to sync what must be on disk; throws Error as append() does.
  void catch_up();
  bool is_behind() const { return !kept_.empty() || sync_owed_; }
  const Path& path() const { return path_; }
  bool ends_within_a_line() const { return ends_within_a_line_; }  // when it was opened

 private:
  void open();
  void reserve_ahead();
  void sync();

  const Path path_;
  const unsigned permissions_;
  FileDescriptor file_;
  std::string kept_;
  bool ends_within_a_line_ = false, sync_owed_ = false;
  std::uint64_t reserve_ = 0, reserved_to_ = 0;  // wanted beyond the end; position in the file
};

}  // namespace dtrain
