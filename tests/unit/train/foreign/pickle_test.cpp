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

// Puts what describes a storage on the stack.
std::string storage_with_key_of(int size) {
  const std::string length{static_cast<char>(size % 256), static_cast<char>(size / 256), '\0', '\0'};
  return "(X\x07\0\0\0storagectorch\nFloatStorage\nX"s + length + std::string(static_cast<std::size_t>(size), '1') +
         "X\x03\0\0\0cpuK\x01t"s;
}

std::string repeated(std::string_view program, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += program;
  return text;
}

TEST(Pickle, RefusesStoragesWithLongKeys) {
  read(storage_with_key_of(1024) + "Q.");
  expect_error<DataError>([&] { read(storage_with_key_of(1025) + "Q."); }, "a storage with a key of 1025 bytes");
}

// Four bytes make a storage of the same key, whatever its length.
TEST(Pickle, KeepsAKeyOnce) {
  const std::string program = storage_with_key_of(1024) + "q\0Q0h\0Q."s;
  ByteReader reader(bytes_of(program), "p", "hint");
  Pickle pickle;
  pickle.read(reader);
  ASSERT_EQ(pickle.storages().size(), 2u);
  EXPECT_EQ(pickle.storages()[0]->key.size(), 1024u);
  EXPECT_EQ(pickle.storages()[0]->key.data(), pickle.storages()[1]->key.data());
}

TEST(Pickle, RefusesMoreThanWeightsHave) {
  const std::string many_tensors = "more tensors than a file of weights has";
  const std::string storages = storage_with_key_of(1) + "q\0"s;
  read(storages + repeated("h\0Q0"s, kMostTensors) + ".");
  expect_error<DataError>([&] { read(storages + repeated("h\0Q0"s, kMostTensors + 1) + "."); }, many_tensors);
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\nq\1("s + storages + "QK\0))tq\2"s;
  read(tensor + repeated("h\1h\2R0"s, 2) + ".");
  expect_error<DataError>([&] { read(tensor + repeated("h\1h\2R0"s, kMostTensors + 1) + "."); }, many_tensors);
  expect_error<DataError>([] { read("N" + std::string(10 * kMostTensors + 1, '\x94') + "."); }, "more values than");
}

TEST(Pickle, MayHoldItself) {
  read("]q\0h\0a."s);
  read("}q\0X\x01\0\0\0ah\0s."s);
}

}  // namespace
}  // namespace dtrain::train
