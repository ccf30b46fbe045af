// Frames that are lent: two links of this process over a pair of Unix sockets.
#include "tcp/link.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>

#include "tcp/sockets.hpp"

namespace dtrain::comm::tcp {
namespace {

constexpr std::int64_t kLinkFloats = 50'000;

// Borrows or places what comes, and remembers it.
class Sink final : public FrameSink {
 public:
  bool borrows = true, has_room = true;
  std::vector<float> placed;
  std::vector<const float*> borrowed;
  int came = 0, left = 0, to_give_back = 0;

  std::optional<std::span<std::byte>> place(int, const FrameHeader& header) override {
    if (!has_room) return std::nullopt;
    placed.resize(header.bytes / sizeof(float));
    return std::as_writable_bytes(std::span(placed));
  }
  void arrived(int, const FrameHeader&) override { ++came; }
  bool borrow(int, const FrameHeader&, const std::byte* bytes) override {
    if (borrows && has_room) borrowed.push_back(reinterpret_cast<const float*>(bytes));
    return borrows && has_room;
  }
  void give_back(int) override { ++to_give_back; }
  void gone(const FrameHeader&) override { ++left; }
  void before_write() override {}
};

std::array<FileDescriptor, 2> connected() {
  std::array<int, 2> sockets{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  return {FileDescriptor(sockets[0]), FileDescriptor(sockets[1])};
}

Link make_link(FileDescriptor socket, std::shared_ptr<SharedMemory> memory,
               std::shared_ptr<TrafficCount> traffic = {}) {
  if (!traffic) traffic = std::make_shared<TrafficCount>();
  return {net::Stream(std::move(socket)), 1, "rank 1", true, std::move(traffic), std::move(memory)};
}

class Lending : public testing::Test {
 protected:
  Lending() {
    std::ranges::fill(values_, 3.0f);
    auto [here, there] = connected();
    lender_ = make_link(std::move(here), memory_, traffic_);
    reader_ = make_link(std::move(there), nullptr);
  }
  void send(std::int64_t floats = kLinkFloats) {
    const auto bytes = static_cast<std::uint64_t>(floats) * sizeof(float);
    lender_.queue({{.kind = FrameKind::piece, .bytes = bytes}, reinterpret_cast<const std::byte*>(values_.data())});
  }
  void move() {
    for (int turn = 0; turn < 100; ++turn) {
      for (Link* link : {&lender_, &reader_}) link->note_events(5);  // EPOLLIN, EPOLLOUT
      lender_.write(at_lender_);
      lender_.read(at_lender_);
      reader_.write(at_reader_);
      reader_.read(at_reader_);
    }
  }
  void give_back() { reader_.queue({{.kind = FrameKind::taken}}); }

  const std::shared_ptr<SharedMemory> memory_ = SharedMemory::create();
  const std::shared_ptr<TrafficCount> traffic_ = std::make_shared<TrafficCount>();
  FloatBuffer values_ = memory_->take(kLinkFloats);
  Link lender_, reader_;
  Sink at_lender_, at_reader_;
};

TEST_F(Lending, ShowsThePeerTheSenderOwnFloatsUntilItGivesThemBack) {
  send();
  send();
  move();
  ASSERT_EQ(at_reader_.borrowed.size(), 2u);
  EXPECT_EQ(at_reader_.borrowed[0][kLinkFloats - 1], 3.0f);
  values_[5] = 8;
  EXPECT_EQ(at_reader_.borrowed[0][5], 8.0f) << "no copy";
  EXPECT_EQ(at_lender_.left, 0);
  EXPECT_TRUE(lender_.has_output());
  EXPECT_GE(traffic_->sent, 2 * kLinkFloats * sizeof(float)) << "lent bytes count";
  give_back();
  move();
  EXPECT_EQ(at_lender_.left, 1);
  give_back();
  move();
  EXPECT_EQ(at_lender_.left, 2);
  EXPECT_FALSE(lender_.has_output());
}

TEST_F(Lending, CopiesWhatIsNotBorrowed) {
  at_reader_.borrows = false;
  send();
  move();
  EXPECT_EQ(at_reader_.placed, std::vector<float>(kLinkFloats, 3.0f));
  EXPECT_EQ(at_reader_.came, 1);
  EXPECT_EQ(at_reader_.to_give_back, 1);
}

TEST_F(Lending, WaitsForRoom) {
  at_reader_.has_room = false;
  send();
  move();
  EXPECT_TRUE(at_reader_.borrowed.empty());
  at_reader_.has_room = true;
  reader_.resume();
  move();
  EXPECT_EQ(at_reader_.borrowed.size(), 1u);
}

TEST_F(Lending, IsNotForSmallFramesOrThoseElsewhere) {
  send(10);
  move();
  EXPECT_EQ(at_reader_.placed, std::vector<float>(10, 3.0f));
  const std::vector<float> elsewhere(kLinkFloats, 4.0f);
  lender_.queue({{.kind = FrameKind::piece, .bytes = kLinkFloats * sizeof(float)},
                 reinterpret_cast<const std::byte*>(elsewhere.data())});
  move();
  EXPECT_EQ(at_reader_.placed, elsewhere);
  EXPECT_EQ(at_reader_.to_give_back, 0);
  EXPECT_EQ(at_lender_.left, 2);
}

TEST_F(Lending, OfNothingIsNotGivenBack) {
  give_back();
  EXPECT_THROW(move(), PeerLost);
}

// The reader says where the lender has memory, but shares none.
TEST_F(Lending, NeedsMemoryThatIsShared) {
  reader_.queue({{.kind = FrameKind::piece, .bytes = 1 << 20, .lent_at = 1}});
  EXPECT_THROW(move(), PeerLost);
}

TEST(LentFrame, BeyondTheSharedFileIsRefused) {
  auto [here, there] = connected();
  Link reader = make_link(std::move(there), nullptr);
  const auto memory = SharedMemory::create();
  ASSERT_TRUE(send_file(here.get(), memory->file()));
  const FrameHeader header{.kind = FrameKind::piece, .bytes = 4096, .lent_at = 1};
  ASSERT_EQ(::send(here.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  Sink sink;
  sink.borrows = false;
  EXPECT_THROW(
      {
        for (int turn = 0; turn < 5; ++turn) reader.read(sink);
      },
      PeerLost);
}

TEST(LentFrame, NeedsAFileThatCannotShrink) {
  auto [here, there] = connected();
  Link reader = make_link(std::move(there), nullptr);
  const FileDescriptor file(::memfd_create("a test", MFD_CLOEXEC));
  ASSERT_TRUE(send_file(here.get(), file.get()));
  Sink sink;
  EXPECT_THROW(reader.read(sink), PeerLost);
}

TEST(FurtherConnection, HasNoFramesThatStayInOrder) {
  auto [here, there] = connected();
  Link reader(net::Stream(std::move(there)), 1, "rank 1", false, std::make_shared<TrafficCount>(), nullptr);
  ASSERT_TRUE(send_file(here.get(), -1));
  const FrameHeader header{.kind = FrameKind::gather, .bytes = 4};
  ASSERT_EQ(::send(here.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  Sink sink;
  EXPECT_THROW(
      {
        for (int turn = 0; turn < 5; ++turn) reader.read(sink);
      },
      PeerLost);
}

}  // namespace
}  // namespace dtrain::comm::tcp
