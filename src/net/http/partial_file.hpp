// TO.part, the beginning of a download, and TO.part.from, which says of what: stored_url() and the server's validator.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

#include "download_part.hpp"

namespace dtrain::net {

// Holds a lock, so that two processes never write one file. Throws Error on every failure of the disk.
class PartialFile {
 public:
  // Opens what an earlier try left of the same URL; what was left of another is dropped. Throws UsageError as
  // download_target() does.
  PartialFile(const Path& to, std::string url);
  ~PartialFile();
  const Path& path() const { return part_; }
  std::uint64_t size() const { return size_; }
  const std::string& validator() const { return validator_; }  // empty: unknown
  // The next write goes to `offset`, 0 or size(); what lies behind it is cut off.
  void begin_at(std::uint64_t offset, const std::string& validator);
  void write(ByteView bytes);
  void remove();    // empties it
  void complete();  // makes it TO, on disk

 private:
  DownloadTarget target_;
  Path part_, from_;
  std::string url_, validator_;
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace dtrain::net
