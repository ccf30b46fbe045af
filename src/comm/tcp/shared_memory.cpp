#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::size_t kPage = 64 << 10;  // of every machine

std::size_t in_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace

// ---- of this rank

std::shared_ptr<SharedMemory> SharedMemory::create() {
  FileDescriptor file(::memfd_create("dtrain-gradients", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) return nullptr;
  return std::shared_ptr<SharedMemory>(new SharedMemory(std::move(file)));
}

SharedMemory::~SharedMemory() {
  for (const auto& [address, extent] : extents_) ::munmap(const_cast<std::byte*>(address), extent.size);
}

FloatBuffer SharedMemory::take(std::int64_t floats) {
  const std::size_t size = static_cast<std::size_t>(floats) * sizeof(float);
  float* const values = size < kLeastLent ? nullptr : reserve(in_pages(size));
  if (values == nullptr) return FloatBuffer(floats);
  const auto give_back = [owner = shared_from_this()](float* memory) { owner->release(memory); };
  return {std::shared_ptr<float[]>(values, give_back), floats};
}

// A free extent of no more than twice the size, or a new one.
float* SharedMemory::reserve(std::size_t size) {
  const MutexLock lock(mutex_);
  const auto fitting = free_.lower_bound(size);
  if (fitting == free_.end() || fitting->first > 2 * size) return append(size);
  std::byte* const address = fitting->second;
  free_.erase(fitting);
  return reinterpret_cast<float*>(address);
}

float* SharedMemory::append(std::size_t size) {
  if (::ftruncate(file_.get(), static_cast<off_t>(end_ + size)) != 0) return nullptr;
  void* const address =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), static_cast<off_t>(end_));
  const std::uint64_t offset = std::exchange(end_, end_ + size);
  if (address == MAP_FAILED) return nullptr;  // this part of the file stays empty
  extents_[static_cast<std::byte*>(address)] = {offset, size};
  return static_cast<float*>(address);
}

// The system gets the pages back, the extent serves another buffer.
void SharedMemory::release(float* values) {
  auto* const address = reinterpret_cast<std::byte*>(values);
  const MutexLock lock(mutex_);
  if (keeps_all_) return;
  const Extent& extent = extents_.at(address);
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
              static_cast<off_t>(extent.size));
  free_.emplace(extent.size, address);
}

void SharedMemory::keep_all() {
  const MutexLock lock(mutex_);
  keeps_all_ = true;
}

std::optional<std::uint64_t> SharedMemory::offset_of(const std::byte* bytes, std::size_t size) const {
  const MutexLock lock(mutex_);
  auto after = extents_.upper_bound(bytes);
  if (after == extents_.begin()) return std::nullopt;
  const auto& [address, extent] = *--after;
  const auto inside = static_cast<std::size_t>(bytes - address);
  if (inside + size > extent.size) return std::nullopt;
  return extent.offset + inside;
}

// ---- of a peer

PeerMemory::PeerMemory(FileDescriptor file, const std::string& peer) : file_(std::move(file)) {
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw PeerLost(peer + " shares a file that is no memory for gradients");
}

PeerMemory::~PeerMemory() {
  for (const std::span<const std::byte> part : mapped_) ::munmap(const_cast<std::byte*>(part.data()), part.size());
}

// The file grows by whole extents, and none of the peer's buffers lies in two. So none lies in two parts of mapped_.
const std::byte* PeerMemory::look(std::uint64_t offset, std::size_t size) {
  std::uint64_t begin = 0;
  for (const std::span<const std::byte> part : mapped_) {
    if (offset >= begin && offset - begin <= part.size() && size <= part.size() - (offset - begin)) {
      return part.data() + (offset - begin);
    }
    begin += part.size();
  }
  struct stat status {};
  if (offset < begin || ::fstat(file_.get(), &status) != 0) return nullptr;
  const auto end = static_cast<std::uint64_t>(status.st_size);
  if (end <= offset || size > end - offset) return nullptr;
  void* const address = ::mmap(nullptr, end - begin, PROT_READ, MAP_SHARED, file_.get(), static_cast<off_t>(begin));
  if (address == MAP_FAILED) return nullptr;
  mapped_.emplace_back(static_cast<const std::byte*>(address), end - begin);
  return mapped_.back().data() + (offset - begin);
}

bool PeerMemory::read(std::uint64_t offset, std::span<std::byte> to) const {
  return read_all_at(file_, offset, to) == to.size();
}

}  // namespace dtrain::comm::tcp
