// Files of an archive, written below a folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// How far an archive was unpacked, as OUT/.dtrain-unpack.json says it while the archive is not at its end.
class UnpackFolder {
 public:
  // Makes the folder. `archive` is a path or a URL, `version` distinguishes it from another of the same name.
  UnpackFolder(Path out, const std::string& archive, std::string version);
  // The byte up to which an earlier run unpacked this very archive; 0: it did not.
  std::uint64_t where_it_ended() const;
  // Writes a file under this name, which appears when it is whole: `read` gives the bytes piece after piece, the last
  // one empty. Throws DataError for names and links that lead out of the folder, and for names of its own files.
  void write(const std::string& name, const std::function<ByteView()>& read);
  void make_folder(const std::string& name);
  // Now and then brings everything to disk and says that the archive is unpacked up to this byte.
  void reached(std::uint64_t offset);
  // Brings everything to disk.
  void finish();

 private:
  void check(const std::string& name) const;

  Path out_, note_, part_;
  std::string shown_;     // the archive's name in messages
  std::string noted_as_;  // its name in the note, which others may read
  std::string version_;
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::data
