#include "foreign/torch_file.hpp"

#include <gtest/gtest.h>

#include "data/temporary_folder.hpp"

namespace dtrain::train {
namespace {

using namespace std::string_literals;

// A file as PyTorch wrote it before 1.6, with one storage of one number. `levels`: dictionaries with 100 keys each, all
// of which lead to the same dictionary below, and at last to the same tensor.
std::string file_with_levels(int levels) {
  const auto number = [](int value) { return std::string(1, static_cast<char>(value)); };
  const auto key = [](char letter) { return "X\x01\0\0\0"s + letter; };
  std::string root = "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n"s + key('1') +
                     "X\x03\0\0\0cpuK\x01tQK\0))tRq\0"s;
  for (int level = 1; level <= levels; ++level) {
    root += "}q" + number(level);
    for (int i = 1; i <= 100; ++i) root += key(static_cast<char>(i)) + "h" + number(level - 1) + "s";
  }
  const std::string begin = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.K\x01.}."s;
  const std::string keys = "]" + key('1') + "a.", storage = "\x01\0\0\0\0\0\0\0\0\0\x80\x3f"s;
  return begin + root + "." + keys + storage;
}

TEST(TorchFile, HasAsManyTensorsAsNamesLeadToThem) {
  const std::string file = file_with_levels(2);
  const auto tensors = parse_torch_file(bytes_of(file), "f");
  EXPECT_EQ(tensors.size(), 10'000u);
  float value = 0;
  copy_values(tensors.back(), std::span(&value, 1));
  EXPECT_EQ(value, 1);
}

// A few kilobytes.
TEST(TorchFile, WithMoreNamesThanWeightsHaveIsRefused) {
  const std::string file = file_with_levels(3);
  EXPECT_LT(file.size(), 4096u);
  data::expect_error<DataError>([&] { parse_torch_file(bytes_of(file), "f"); }, "more names of tensors than weights");
}

}  // namespace
}  // namespace dtrain::train
