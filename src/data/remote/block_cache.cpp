#include "block_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::data {
namespace {

constexpr std::uint32_t kMagic = 0x31425444;  // "DTB1"
constexpr auto kLongestWait = std::chrono::seconds(30);
constexpr auto kLookEvery = std::chrono::milliseconds(5);
// The folder is measured each time that this process has written so small a part of the limit.
constexpr std::uint64_t kMeasuresInLimit = 128;

struct BlockHead {
  std::uint32_t magic = kMagic;
  std::uint32_t crc32c = 0;
  std::uint64_t size = 0;
};

bool fills(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> into) {
  return read_all_at(file, offset, into) == into.size();
}

bool takes(const FileDescriptor& file, ByteView bytes) { return write_all(file, bytes) == bytes.size(); }

bool is_whole(const FileDescriptor& file, const BlockHead& head) {
  struct stat status {};
  if (head.magic != kMagic || ::fstat(file.get(), &status) != 0) return false;
  if (static_cast<std::uint64_t>(status.st_size) != sizeof(head) + head.size) return false;
  std::vector<std::byte> content(head.size);
  return fills(file, sizeof(head), content) && crc32c(content) == head.crc32c;
}

// After a lock that failed. False: the file system has no locks, so waiting is of no use, and each process goes on by
// itself.
bool is_held_by_other() { return errno == EWOULDBLOCK || errno == EACCES || errno == EINTR; }

struct KeptBlock {
  std::filesystem::file_time_type used;
  std::uint64_t size;
  Path path;
};

// An error ends the list: a folder on NFS may vanish while it is listed, which a range-for would throw.
template <typename Use>
void for_each_entry(const Path& folder, const Use& use) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) use(*entry);
}

// Every block below the folder; those that vanish meanwhile are none.
std::vector<KeptBlock> kept_blocks(const Path& folder) {
  std::vector<KeptBlock> blocks;
  for_each_entry(folder, [&](const auto& object) {
    for_each_entry(object.path(), [&](const auto& entry) {
      std::error_code gone;
      const std::uint64_t size = entry.file_size(gone);
      const auto used = entry.last_write_time(gone);
      if (!gone && entry.path().filename() != "lock") blocks.push_back({used, size, entry.path()});
    });
  });
  return blocks;
}

std::uint64_t bytes_of_blocks(const std::vector<KeptBlock>& blocks) {
  std::uint64_t bytes = 0;
  for (const KeptBlock& block : blocks) bytes += block.size;
  return bytes;
}

}  // namespace

// The first block that is to be kept finds, and says, that the folder cannot be made.
BlockCache::BlockCache(const Path& folder, std::uint64_t limit) : folder_(folder / "blocks-1"), limit_(limit) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  used_ = bytes_of_blocks(kept_blocks(folder_));
}

std::shared_ptr<BlockCache> BlockCache::of_folder(const Path& folder, std::uint64_t limit) {
  static Mutex mutex;
  static std::map<std::pair<Path, std::uint64_t>, std::weak_ptr<BlockCache>> all;
  const MutexLock lock(mutex);
  std::weak_ptr<BlockCache>& known = all[{folder, limit}];
  std::shared_ptr<BlockCache> cache = known.lock();
  if (!cache) known = cache = std::make_shared<BlockCache>(folder, limit);
  return cache;
}

bool BlockCache::read(const BlockName& name, std::uint64_t begin, std::span<std::byte> into, bool check) {
  const Path file = file_of(name);
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  BlockHead head;
  const bool good = fills(fd, 0, std::as_writable_bytes(std::span(&head, 1))) && (!check || is_whole(fd, head)) &&
                    begin + into.size() <= head.size && fills(fd, sizeof(head) + begin, into);
  if (good) {
    ::futimens(fd.get(), nullptr);  // read just now: it goes last
  } else {
    ::unlink(file.c_str());
  }
  return good;
}

void BlockCache::put(const BlockName& name, ByteView content, const Tell& tell) {
  if (broken_) return;
  const Path file = file_of(name);
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (used_ + content.size() > limit_) make_room(limit_ - std::min(limit_, limit_ / 10 + content.size()), Busy::go_on);
  if (write(file, content)) return measure_now_and_then(content.size());
  // Half of what there is now: when another thread or process has made that room meanwhile, nothing more goes.
  make_room(used_ / 2, Busy::wait);
  if (write(file, content) || broken_.exchange(true)) return;
  if (tell)
    tell(fmt::format("{}: cannot be written to ({}); going on without it", folder_.string(), std::strerror(errno)));
}

void BlockCache::measure_now_and_then(std::uint64_t written) {
  if ((unmeasured_ += written) < limit_ / kMeasuresInLimit) return;
  unmeasured_ = 0;
  used_ = bytes_of_blocks(kept_blocks(folder_));
}

bool BlockCache::write(const Path& file, ByteView content) {
  static std::atomic<std::uint64_t> writes = 0;  // of this process: two caches of one folder write no file together
  const Path temporary = fmt::format("{}.{}.{}", file.string(), ::getpid(), writes++);
  const BlockHead head{.crc32c = crc32c(content), .size = content.size()};
  const FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  const bool written = fd && takes(fd, std::as_bytes(std::span(&head, 1))) && takes(fd, content) &&
                       ::rename(temporary.c_str(), file.c_str()) == 0;
  const int error = errno;
  if (!written) ::unlink(temporary.c_str());
  if (written) used_ += sizeof(head) + content.size();
  errno = error;
  return written;
}

void BlockCache::make_room(std::uint64_t target, Busy busy) {
  if (!evicting_.try_lock()) {
    if (busy == Busy::go_on) return;
    evicting_.lock();
  }
  const MutexLock evicting(evicting_, std::adopt_lock);
  const FileDescriptor lock(::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock) return;
  if (::flock(lock.get(), busy == Busy::wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0 && is_held_by_other()) return;
  std::vector<KeptBlock> blocks = kept_blocks(folder_);
  std::sort(blocks.begin(), blocks.end(), [](const KeptBlock& a, const KeptBlock& b) { return a.used < b.used; });
  std::uint64_t used = bytes_of_blocks(blocks);
  for (const KeptBlock& block : blocks) {
    if (used <= target) break;
    if (::unlink(block.path.c_str()) == 0) used -= block.size;
  }
  used_ = used;
}

BlockCache::Claim BlockCache::claim(const BlockName& name) {
  const Path file = file_of(name);
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  FileDescriptor lock(::open((file.parent_path() / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  // A lock of the open file, not of the process: threads keep each other out too.
  struct flock range {
    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = static_cast<off_t>(name.number), .l_len = 1, .l_pid = 0
  };
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (lock && ::fcntl(lock.get(), F_OFD_SETLK, &range) != 0 && is_held_by_other() &&
         std::chrono::steady_clock::now() < end) {
    if (::access(file.c_str(), F_OK) == 0) return {};
    std::this_thread::sleep_for(kLookEvery);
  }
  return Claim(std::move(lock));
}

}  // namespace dtrain::data
