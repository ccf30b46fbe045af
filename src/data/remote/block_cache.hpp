// Blocks of remote files on disk, shared by the processes of this machine: CACHE/blocks-1/OBJECT/NUMBER, each with a
// checksum in front, so that a damaged one is as good as none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::data {

struct BlockName {
  std::string object;  // a name that no other content shares
  std::uint64_t number = 0;
};

// Any number of threads and processes share one folder. A block is written to a temporary name and renamed, so that a
// reader sees a whole block or none; a block that is removed while it is read stays readable through its descriptor.
// Locks: claim() holds a lock of one byte of OBJECT/lock (an open-file-description lock, which also excludes threads of
// this process) while the block is fetched; the kernel releases it if the process dies. Eviction holds `evicting_` and
// an flock of the file `lock`; only a thread that found the disk full waits for them: while another thread or process
// evicts, the others go on. On a file system without locks all go on without them: a block may be fetched twice, and
// more blocks than necessary evicted. `used_` counts what this process writes and, at every measurement of the folder,
// what others wrote, so that with n processes the folder exceeds its limit by n / 128 of it at most. Nothing throws: a
// block that cannot be read counts as missing, and a cache that cannot be written to warns once and is only read from
// then on.
class BlockCache {
 public:
  using Tell = std::function<void(const std::string&)>;

  BlockCache(const Path& folder, std::uint64_t limit);
  // The one of this process for a folder and a limit: the files that share it are counted together.
  static std::shared_ptr<BlockCache> of_folder(const Path& folder, std::uint64_t limit);
  // Bytes of the block from `begin` on. False: it is not there, shorter, or damaged (then it is removed). `check`: the
  // whole block is compared with its checksum; once a process is enough.
  [[nodiscard]] bool read(const BlockName& name, std::uint64_t begin, std::span<std::byte> into, bool check);
  // Keeps it, if there is room or room can be made. `tell`, which may be empty, gets the warning.
  void put(const BlockName& name, ByteView content, const Tell& tell);

  // While it lives no other thread or process holds the same block's claim, unless it waited too long for it.
  class [[nodiscard]] Claim {
   public:
    Claim() = default;
    explicit Claim(FileDescriptor lock) : lock_(std::move(lock)) {}

   private:
    FileDescriptor lock_;
  };
  // Waits while another one fetches the block, and returns early once the block is there.
  Claim claim(const BlockName& name);

 private:
  Path file_of(const BlockName& name) const { return folder_ / name.object / std::to_string(name.number); }
  bool write(const Path& file, ByteView content);
  enum class Busy { go_on, wait };  // while another thread or process makes room
  void measure_now_and_then(std::uint64_t written);
  void make_room(std::uint64_t target, Busy busy) DTRAIN_EXCLUDES(evicting_);

  Path folder_;
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};        // about: other processes write too
  std::atomic<std::uint64_t> unmeasured_{0};  // bytes written since the folder was measured
  std::atomic<bool> broken_{false};           // the user was warned; not written to any more
  Mutex evicting_;
};

}  // namespace dtrain::data
