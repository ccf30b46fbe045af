#include "tcp/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::int64_t kSharedFloats = 100'000;
constexpr std::size_t kBytes = kSharedFloats * sizeof(float);

const std::byte* bytes_of(const FloatBuffer& buffer) { return reinterpret_cast<const std::byte*>(buffer.data()); }

PeerMemory opened(const SharedMemory& memory) { return {FileDescriptor(::dup(memory.file())), "a peer"}; }

std::int64_t kept_bytes(const SharedMemory& memory) {
  struct stat status {};
  ::fstat(memory.file(), &status);
  return status.st_blocks * 512;
}

TEST(SharedMemory, IsReadWhereItLies) {
  const auto memory = SharedMemory::create();
  ASSERT_NE(memory, nullptr);
  PeerMemory peer = opened(*memory);
  std::vector<FloatBuffer> kept;
  for (const float value : {1.0f, 2.0f, 3.0f}) {  // each buffer makes the file grow
    FloatBuffer buffer = memory->take(kSharedFloats);
    std::ranges::fill(buffer, value);
    const auto offset = memory->offset_of(bytes_of(buffer) + 400, kBytes - 400);
    ASSERT_TRUE(offset.has_value());
    const std::byte* const seen = peer.look(*offset, kBytes - 400);
    ASSERT_NE(seen, nullptr);
    EXPECT_EQ(std::memcmp(seen, bytes_of(buffer) + 400, kBytes - 400), 0) << value;
    buffer[200] = 7;
    EXPECT_EQ(std::memcmp(seen, bytes_of(buffer) + 400, kBytes - 400), 0) << "the same memory";
    std::vector<std::byte> copy(kBytes - 400);
    EXPECT_TRUE(peer.read(*offset, copy));
    EXPECT_EQ(std::memcmp(copy.data(), seen, copy.size()), 0);
    kept.push_back(std::move(buffer));
  }
}

TEST(SharedMemory, KnowsWhatDoesNotLieInIt) {
  const auto memory = SharedMemory::create();
  EXPECT_EQ(memory->offset_of(bytes_of(FloatBuffer(kSharedFloats)), kBytes), std::nullopt);
  const FloatBuffer small = memory->take(10), large = memory->take(kSharedFloats);
  EXPECT_EQ(memory->offset_of(bytes_of(small), 40), std::nullopt) << "small buffers are not worth a mapping";
  EXPECT_NE(memory->offset_of(bytes_of(large), kBytes), std::nullopt);
  EXPECT_EQ(memory->offset_of(bytes_of(large), kBytes + (64 << 10)), std::nullopt) << "more than the buffer";
}

TEST(SharedMemory, GivesPagesBackUntilAPeerMayReadAny) {
  const auto memory = SharedMemory::create();
  FloatBuffer first = memory->take(kSharedFloats);
  std::ranges::fill(first, 1.0f);
  const float* const place = first.data();
  EXPECT_GE(kept_bytes(*memory), static_cast<std::int64_t>(kBytes));
  first = {};
  EXPECT_EQ(kept_bytes(*memory), 0);
  FloatBuffer second = memory->take(kSharedFloats - 100);
  EXPECT_EQ(second.data(), place) << "the place serves again";
  std::ranges::fill(second, 2.0f);

  PeerMemory peer = opened(*memory);
  const auto* const seen = reinterpret_cast<const float*>(peer.look(0, kBytes - 400));
  memory->keep_all();
  second = {};
  EXPECT_EQ(seen[1000], 2.0f);
}

TEST(SharedMemory, OutlivesItsOwnerInABuffer) {
  auto memory = SharedMemory::create();
  FloatBuffer buffer = memory->take(kSharedFloats);
  memory.reset();
  std::ranges::fill(buffer, 4.0f);
  EXPECT_EQ(buffer[kSharedFloats - 1], 4.0f);
}

TEST(PeerMemory, HasNothingBeyondTheFile) {
  const auto memory = SharedMemory::create();
  const FloatBuffer buffer = memory->take(kSharedFloats);
  PeerMemory peer = opened(*memory);
  std::vector<std::byte> room(64);
  for (const std::uint64_t offset : {std::uint64_t{1} << 20, ~std::uint64_t{0} - 10, std::uint64_t{1} << 63}) {
    EXPECT_EQ(peer.look(offset, 64), nullptr);
    EXPECT_FALSE(peer.read(offset, room));
  }
  EXPECT_EQ(peer.look(0, ~std::size_t{0}), nullptr);
  EXPECT_EQ(peer.look(100, ~std::size_t{0} - 50), nullptr);
}

// Reading a mapping beyond the end of its file ends the process.
TEST(PeerMemory, TakesNoFileThatCouldShrink) {
  for (const unsigned flags : {0u, static_cast<unsigned>(MFD_ALLOW_SEALING)}) {
    FileDescriptor file(::memfd_create("a test", flags | MFD_CLOEXEC));
    EXPECT_THROW(PeerMemory(std::move(file), "rank 1"), PeerLost);
  }
  EXPECT_THROW(PeerMemory(FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), "rank 1"), PeerLost);
}

}  // namespace
}  // namespace dtrain::comm::tcp
