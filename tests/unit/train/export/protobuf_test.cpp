#include <gtest/gtest.h>

#include "export/protobuf.hpp"

namespace dtrain::train {
namespace {

using namespace std::string_literals;

TEST(Protobuf, WritesTheExamplesOfItsSpecification) {
  EXPECT_EQ(ProtoMessage().integer(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtoMessage().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoMessage().message(3, ProtoMessage().integer(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtoMessage().integer(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Protobuf, WritesNumbersOfFixedSizeLittleEndian) {
  EXPECT_EQ(ProtoMessage().float32(2, 1.0f).bytes(), "\x15\0\0\x80\x3f"s);
  EXPECT_EQ(ProtoMessage().float64(1, 1.0).bytes(), "\x09\0\0\0\0\0\0\xf0\x3f"s);
  EXPECT_EQ(ProtoMessage().integer(20, 1).bytes(), "\xa0\x01\x01");
}

TEST(Protobuf, BorrowedBytesReadLikeCopiedOnes) {
  const auto build = [](auto add) {
    ProtoMessage inner;
    inner.integer(1, 1);
    add(inner);
    inner.integer(2, 2);
    return ProtoMessage().message(5, inner).integer(6, 3);
  };
  const ProtoMessage borrowed = build([](ProtoMessage& m) { m.borrowed_bytes(9, bytes_of("large")); });
  const ProtoMessage copied = build([](ProtoMessage& m) { m.text(9, "large"); });
  EXPECT_EQ(borrowed.bytes(), copied.bytes());
  EXPECT_EQ(borrowed.size(), borrowed.bytes().size());
  EXPECT_EQ(ProtoMessage().borrowed_bytes(9, {}).integer(1, 1).bytes(), "\x4a\0\x08\x01"s);
}

}  // namespace
}  // namespace dtrain::train
