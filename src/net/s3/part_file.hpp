// TO.part, the object's size from the beginning, and TO.part.from: of which object it is and which parts have come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/objects.hpp>

#include "http/download_part.hpp"

namespace dtrain::net {

// Holds a lock, so that two processes never write one file. Throws Error on every failure of the disk. A part is marked
// in TO.part.from once its bytes are on disk: a power cut may take parts away, and leaves no mark of a part that it
// took.
class PartFile {
 public:
  // Takes over what an earlier try left of the same object; what was left of another is dropped. The whole size is
  // reserved on disk, or compared with its free space, so a full disk shows here. Throws UsageError as
  // download_target() does.
  PartFile(const Path& to, const std::string& url, const ObjectState& state, std::uint64_t part_size);
  PartFile(const PartFile&) = delete;
  ~PartFile();  // leaves marks of all parts that came, for the next try
  const std::vector<std::size_t>& missing() const { return missing_; }
  std::uint64_t begin_of(std::size_t number) const { return number * part_size_; }
  std::uint64_t size_of(std::size_t number) const;
  void write(std::uint64_t offset, ByteView bytes);           // from any thread
  void has_come(std::size_t number) DTRAIN_EXCLUDES(mutex_);  // from any thread
  MappedFile content() const { return MappedFile(part_); }
  void drop();      // its content is wrong
  void complete();  // makes it TO, on disk

 private:
  void take_over(const std::string& about);
  void reserve();
  bool has_room() const;
  bool has_whole_size() const;
  void mark(const std::vector<std::size_t>& parts);
  std::vector<std::size_t> take_unmarked() DTRAIN_EXCLUDES(mutex_);

  DownloadTarget target_;
  Path part_, from_;
  std::uint64_t size_, part_size_, header_ = 0;
  FileDescriptor fd_, from_fd_;
  std::vector<std::size_t> missing_;
  Mutex mutex_;
  std::vector<std::size_t> unmarked_ DTRAIN_GUARDED_BY(mutex_);  // parts that came and may not be on disk
};

}  // namespace dtrain::net
