// Memory for floats that processes of one machine share, so that a rank adds what its neighbour holds without copying
// it. Each communicator has one SharedMemory of its own, an anonymous file (memfd_create(2)) that its peers map.
//
// A communicator that died never changes this memory again, and the next one has another file. So a peer that still
// reads from it reads floats that were sent, and not those of a later step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/float_buffer.hpp>

namespace dtrain::comm::tcp {

// Less is sent: a lent frame costs two headers and a turn of both threads.
constexpr std::size_t kLeastLent = 32 << 10;

// Any thread. Buffers keep it alive.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // nullptr where the system gives none.
  static std::shared_ptr<SharedMemory> create();
  ~SharedMemory();

  // Small buffers, and those for which the system has no room, are memory of this process.
  FloatBuffer take(std::int64_t floats);
  // Where the bytes are in the file; nullopt: not there.
  std::optional<std::uint64_t> offset_of(const std::byte* bytes, std::size_t size) const;
  int file() const { return file_.get(); }
  // From now on the system gets no pages back before all do: a peer may read any.
  void keep_all();

 private:
  struct Extent {
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };

  explicit SharedMemory(FileDescriptor file) : file_(std::move(file)) {}
  float* reserve(std::size_t size);
  float* append(std::size_t size) DTRAIN_REQUIRES(mutex_);
  void release(float* values);

  const FileDescriptor file_;
  mutable Mutex mutex_;
  bool keeps_all_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::uint64_t end_ DTRAIN_GUARDED_BY(mutex_) = 0;  // of the file
  std::map<const std::byte*, Extent> extents_
      DTRAIN_GUARDED_BY(mutex_);  // by address: each serves one buffer at a time
  std::multimap<std::size_t, std::byte*> free_ DTRAIN_GUARDED_BY(mutex_);  // by size
};

// A peer's SharedMemory. One thread.
class PeerMemory {
 public:
  // Throws PeerLost, with the peer's name, for a file that could shrink: reading it would end this process.
  PeerMemory(FileDescriptor file, const std::string& peer);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;

  // The bytes in the file, mapped; stays as long as this. nullptr: the file has no such bytes, or there is no room.
  const std::byte* look(std::uint64_t offset, std::size_t size);
  // Copies them; false: the file has no such bytes.
  bool read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  FileDescriptor file_;
  std::vector<std::span<const std::byte>> mapped_;  // the file from its beginning, in parts as it grew
};

}  // namespace dtrain::comm::tcp
