#include "foreign/pickle.hpp"

#include <gtest/gtest.h>

#include "data/temporary_folder.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;
using namespace std::string_literals;

void read(const std::string& program) {
  ByteReader reader(bytes_of(program), "p", "hint");
  Pickle().read(reader);
}

TEST(Pickle, ReadsPlainValues) {
  const std::string program = "\x80\x02}(X\x01\0\0\0aK\x07X\x01\0\0\0b\x8a\x02\xff\xffu."s;
  ByteReader reader(bytes_of(program), "p", "hint");
  Pickle pickle;
  const auto& root = std::get<PickleDictionary>(pickle.read(reader).value);
  ASSERT_EQ(root.items.size(), 2u);
  EXPECT_EQ(std::get<std::string>(root.items[0].first->value), "a");
  EXPECT_EQ(std::get<std::int64_t>(root.items[0].second->value), 7);
  EXPECT_EQ(std::get<std::int64_t>(root.items[1].second->value), -1);
  EXPECT_TRUE(reader.done());
}

TEST(Pickle, RunsNothing) {
  expect_error<DataError>([] { read("cos\nsystem\n(X\x04\0\0\0truetR."s); }, "it would run os.system");
  expect_error<DataError>(
      [] {
        read(
            "\x80\x04\x8c\x08"
            "builtins\x8c\x04"
            "eval\x93."s);
      },
      "it would run builtins.eval");
  expect_error<DataError>([] { read("ctorch\nload\n."s); }, "it would run torch.load");
  // INST, OBJ, NEWOBJ and extension codes make objects of classes.
  for (const char* opcode : {"(ios\nsystem\n.", "(o.", "\x81", "\x82\x01"}) {
    expect_error<DataError>([&] { read(opcode); }, "the pickle operation 0x");
  }
}

TEST(Pickle, RefusesWhatNoStackHolds) {
  for (const std::string& program :
       {"."s, "s."s, "u."s, "(u."s, "}X\x01\0\0\0as."s, "h\0."s, "t."s, "K\x01\x85R."s, "K\x01K\x02s."s, "0."s, "(."s,
        "ctorch\nFloatStorage\n)R."s, "X\xff\xff\xff\xff."s, ")Q."s, "K\1b."s, ""s}) {
    expect_error<DataError>([&] { read(program); }, "p: byte ");
  }
}

// A storage's key is copied with each tensor of it.
TEST(Pickle, RefusesStoragesWithLongKeys) {
  const auto storage_with_key_of = [](int size) {
    const std::string length{static_cast<char>(size % 256), static_cast<char>(size / 256), '\0', '\0'};
    return "(X\x07\0\0\0storagectorch\nFloatStorage\nX"s + length + std::string(static_cast<std::size_t>(size), '1') +
           "X\x03\0\0\0cpuK\x01tQ."s;
  };
  read(storage_with_key_of(1024));
  expect_error<DataError>([&] { read(storage_with_key_of(1025)); }, "a storage with a key of 1025 bytes");
}

TEST(Pickle, MayHoldItself) {
  read("]q\0h\0a."s);
  read("}q\0X\x01\0\0\0ah\0s."s);
}

}  // namespace
}  // namespace dtrain::train
