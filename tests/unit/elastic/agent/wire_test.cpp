#include "agent/wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

#define DTRAIN_FRAME_TAG(name, byte) Tag::name,
constexpr Tag kAllTags[] = {DTRAIN_FRAME_TAGS(DTRAIN_FRAME_TAG)};
#undef DTRAIN_FRAME_TAG

TEST(Wire, AFrameOfEachTagComesBackAndNoOtherOne) {
  std::set<char> bytes;
  for (const Tag tag : kAllTags) {
    const AgentFrame frame = decode(encode(tag, 0x0102030405060708, "body"));
    EXPECT_EQ(frame.tag, tag);
    EXPECT_EQ(frame.worker, 0x0102030405060708u);
    EXPECT_EQ(frame.body, "body");
    EXPECT_TRUE(bytes.insert(static_cast<char>(tag)).second) << "two tags have the byte " << static_cast<char>(tag);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (bytes.contains(static_cast<char>(byte))) continue;
    EXPECT_THROW(decode(encode(static_cast<Tag>(byte), 1, "")), DataError) << byte;
  }
  EXPECT_THROW(decode("j"), DataError);
}

TEST(Wire, AnEndSaysWhetherThereWasAProcess) {
  for (const bool started : {false, true}) {
    const Exited back = exited_from_json(to_json(Exited{127, 0, {"no process"}, started}));
    EXPECT_EQ(back.started, started);
    EXPECT_EQ(back.exit_code, 127);
    EXPECT_EQ(back.last_lines, std::vector<std::string>{"no process"});
  }
}

TEST(Wire, AJoinRequestNamesNoSlotOutOfRange) {
  const auto read_again = [](int slot) {
    const WorkerReport worker{.worker = 7, .slot = slot, .silence = {}, .said = {}};
    return join_request_from_json(to_json(JoinRequest{.host = "h", .tree = "t", .workers = {worker}})).workers.at(0);
  };
  EXPECT_EQ(read_again(0).slot, 0);
  EXPECT_EQ(read_again(1'000'000).slot, 1'000'000);
  for (const int slot : {-1, 1'000'001, std::numeric_limits<int>::max()}) {
    EXPECT_THROW(read_again(slot), DataError) << slot;
  }
  Json beyond_int = to_json(JoinRequest{.host = "h", .tree = "t"});
  beyond_int["workers"] = Json::parse(R"([{"worker": 7, "slot": 4294967296, "silence_ms": 0, "said": []}])", "workers");
  EXPECT_THROW(join_request_from_json(beyond_int), DataError);
}

}  // namespace
}  // namespace dtrain::elastic
