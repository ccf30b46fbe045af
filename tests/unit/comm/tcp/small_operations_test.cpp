#include "tcp/small_operations.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include <dtrain/base/error.hpp>

#include "tcp/sockets.hpp"

namespace dtrain::comm::tcp {
namespace {

using namespace std::chrono_literals;

// Rank 0 of two, whose peer sends nothing itself: the tests hand frames to an operation.
class SmallOperations : public testing::Test {
 protected:
  SmallOperations() {
    std::array<int, 2> sockets{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
    peer_ = FileDescriptor(sockets[1]);
    std::vector<std::vector<Link>> links(2);
    links[1].emplace_back(net::Stream(FileDescriptor(sockets[0])), 1, "rank 1", true, std::make_shared<TrafficCount>(),
                          nullptr);
    exchange_.emplace(0, std::move(links), 1s, nullptr);
  }

  FileDescriptor peer_;
  std::optional<Exchange> exchange_;
};

TEST_F(SmallOperations, AGatherTakesTheBytesOfAPeerOnce) {
  GatherOperation operation(*exchange_, 1, {});
  const FrameHeader frame{.kind = FrameKind::gather, .sequence = 1, .bytes = 3};
  ASSERT_TRUE(operation.place(1, frame));
  operation.arrived(1, frame);
  EXPECT_THROW(operation.place(1, frame), PeerLost);
  EXPECT_FALSE(operation.place(1, {.kind = FrameKind::gather, .sequence = 2, .bytes = 3})) << "it is of the next one";
}

TEST_F(SmallOperations, AReceiverNamesWhatCameInsteadOfTheMessage) {
  std::array<std::byte, 8> room{};
  ReceiveOperation operation(*exchange_, 1, room);
  EXPECT_FALSE(operation.place(1, {.kind = FrameKind::piece, .sequence = 1, .bytes = 8}));
  try {
    operation.place(1, {.kind = FrameKind::gather, .sequence = 1, .bytes = 8});
    FAIL() << "it took another kind of frame";
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "rank 1 sent a frame gather of 8 bytes where a message of 8 was expected");
  }
}

TEST(Sockets, HaveNoNameForAnAddressThatIsTooLong) {
  for (const std::size_t size : {90, 200, 100'000}) {
    EXPECT_FALSE(connect_near({std::string(size, '9'), 1}));
    EXPECT_FALSE(listen_near({std::string(size + 10, '9'), 1}));
  }
}

}  // namespace
}  // namespace dtrain::comm::tcp
