// A .rec file that grows as NAME.rec.part and can go on growing after its process was killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// Empties the part that a run of another plan left of this file, if there is one. Throws Error when another process
// writes it.
void discard_part(const Path& rec);
// Removes such a part. One that another process writes stays. Throws Error when it cannot be removed.
void remove_part(const Path& rec);

class ShardFile {
 public:
  // take_up: keep the whole, decodable records that a part left behind holds, as long as their ids come in the order of
  // `ids`; else begin anew, also where two ids are equal, which do not say what the part holds. Throws Error when
  // another process writes this file.
  ShardFile(const Path& rec, const std::vector<std::uint64_t>& ids, bool take_up);

  // Positions in `ids` of the records that it holds, growing.
  const std::vector<std::size_t>& positions() const { return positions_; }
  std::uint64_t bytes() const { return size_; }
  void add(std::size_t position, std::string_view framed);
  // Everything on disk, the .idx beside it, then its own name.
  void finish();
  // Removes the part, where that is possible. Afterwards there is nothing to add to.
  void discard();

 private:
  void keep_good_records();

  Path rec_, part_;
  const std::vector<std::uint64_t>& ids_;
  FileDescriptor fd_;
  std::vector<std::size_t> positions_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t size_ = 0, synced_ = 0;
  std::string buffer_;

  void flush();
};

}  // namespace dtrain::data
