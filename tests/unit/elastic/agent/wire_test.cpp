#include "agent/wire.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dtrain::elastic
